"""The typed view of params.yaml."""

from tasks.params.document import apply_profile, as_document, load_params, parse_yaml, read_document, write_yaml
from tasks.params.engine import EngineParams
from tasks.params.generation import GenerateVariantsParams, GeneratorParams
from tasks.params.policy import AdapterParams, PolicyParams
from tasks.params.retraining import RetrainParams
from tasks.params.sections import (
    CheckerParams,
    ContrastiveRLParams,
    EvaluateParams,
    ExemplarsParams,
    FilterVariantsParams,
    JudgeParams,
    LongParams,
    Params,
    ProblemsParams,
    SelfSupervisedParams,
    SftParams,
)

__all__ = [
    "AdapterParams",
    "CheckerParams",
    "ContrastiveRLParams",
    "EngineParams",
    "EvaluateParams",
    "ExemplarsParams",
    "FilterVariantsParams",
    "GenerateVariantsParams",
    "GeneratorParams",
    "JudgeParams",
    "LongParams",
    "Params",
    "PolicyParams",
    "ProblemsParams",
    "RetrainParams",
    "SelfSupervisedParams",
    "SftParams",
    "apply_profile",
    "as_document",
    "load_params",
    "parse_yaml",
    "read_document",
    "write_yaml",
]
