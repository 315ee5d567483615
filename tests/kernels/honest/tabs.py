"""Indented with tabs, with trailing spaces, a form feed and semicolons."""

PROBLEM = "row_softmax"
EXPECTED = "correct"

import torch, torch.nn as nn

class ModelNew( nn.Module ):
	def forward( self , x ) :   
		y=torch.softmax( x , -1 ) ;   y*=x
		return( y )
