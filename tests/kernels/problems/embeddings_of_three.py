import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.kinds, self.places = nn.Embedding(1000, 256), nn.Embedding(2, 256), nn.Embedding(128, 256)
        self.norm = nn.LayerNorm(256)

    def forward(self, ids, kinds, places):
        return self.norm(self.words(ids) + self.kinds(kinds) + self.places(places))


def get_inputs():
    ids, places = torch.randint(0, 1000, (16, 128)), torch.arange(128).expand(16, 128)
    return [ids, torch.zeros(16, 128, dtype=torch.long), places.contiguous()]


def get_init_inputs():
    return []
