"""The parameters of estimators and of their models, as pyspark.ml defines them: each a `Param` with a setter and a getter."""

from typing import Any, ClassVar, NamedTuple, Optional

from pyspark import keyword_only
from pyspark.ml.param.shared import HasOutputCols, Param, Params, TypeConverters

from horovod.spark.common._columns import Metadata
from horovod.spark.common._start_method import check_start_method
from horovod.spark.common.util import check_validation

_BOOLEAN, _INT, _TEXT = TypeConverters.toBoolean, TypeConverters.toInt, TypeConverters.toString
_TEXTS, _FLOATS = TypeConverters.toListString, TypeConverters.toListFloat


class Parameter(NamedTuple):
    """A parameter: its name, the suffix of its setter and getter, its description, its default and its type."""

    name: str
    accessor: str
    doc: str
    default: Any = None
    converter: Any = None


def set_given(params: Params, values: dict[str, Any]) -> Any:
    """Sets the parameters whose values are not None.

    Args:
      params: the object that has the parameters.
      values: the values, by the names of the parameters.

    Raises:
      TypeError: there is no such parameter.
    """
    unknown = [name for name in values if not params.hasParam(name)]
    if unknown:
        raise TypeError(f"{type(params).__name__} has no parameter {unknown[0]}")
    return params._set(**{name: value for name, value in values.items() if value is not None})


def with_parameters(*parameters: Parameter) -> Any:
    """Returns a decorator that adds parameters, with setters and getters, to a class of `Params`; `_defaults` has the defaults.

    Args:
      parameters: the parameters.
    """

    def decorate(cls: Any) -> Any:
        for parameter in parameters:
            param = Param(Params._dummy(), parameter.name, parameter.doc, parameter.converter)
            setattr(cls, parameter.name, param)
            _add_accessors(cls, parameter)
        inherited = getattr(cls, "_defaults", {})
        cls._defaults = {**inherited, **{parameter.name: parameter.default for parameter in parameters}}
        return cls

    return decorate


_ARGS = {"set": "\n\nArgs:\n  value: the new value.\n", "get": ""}


def _add_accessors(cls: Any, parameter: Parameter) -> None:
    def set_value(self: Any, value: Any) -> Any:
        return self._set(**{parameter.name: value})

    def get_value(self: Any) -> Any:
        return self.getOrDefault(getattr(self, parameter.name))

    for verb, function in (("set", set_value), ("get", get_value)):
        function.__name__ = verb + parameter.accessor
        function.__doc__ = f"{verb.capitalize()}s `{parameter.name}`: {parameter.doc}." + _ARGS[verb]
        if function.__name__ not in vars(cls):
            setattr(cls, function.__name__, function)


class WithDefaults(Params):  # type: ignore[misc]  # pyspark has no types here
    """An object whose parameters have the defaults of its class, and can be set together."""

    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**self._defaults)

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(self, **kwargs: Any) -> Any:
        """Sets the parameters with these names.

        Args:
          kwargs: the values; None: the parameter is not changed.
        """
        return set_given(self, kwargs)


@with_parameters(
    Parameter("num_proc", "NumProc", "number of processes"),
    Parameter("backend", "Backend", "the backend that runs the processes; default: SparkBackend with num_proc of them"),
    Parameter("store", "Store", "where prepared data and the output of runs are; None: rows go to the processes directly, and nothing is kept"),
    Parameter("model", "Model", "the model to train"),
    Parameter("optimizer", "Optimizer", "the local optimizer, from which the distributed one is made"),
    Parameter("loss", "Loss", "loss function, or one for each label"),
    Parameter("loss_weights", "LossWeights", "weight of each label's loss", converter=_FLOATS),
    Parameter("metrics", "Metrics", "metrics to record", []),
    Parameter("gradient_compression", "GradientCompression", "compression of gradients on the network"),
    Parameter("feature_cols", "FeatureCols", "names of the columns that are the model's input", converter=_TEXTS),
    Parameter("continuous_cols", "ContinuousCols", "accepted: of use to NVTabular alone", converter=_TEXTS),
    Parameter("categorical_cols", "CategoricalCols", "accepted: of use to NVTabular alone", converter=_TEXTS),
    Parameter("label_cols", "LabelCols", "names of the columns that the model learns to predict", converter=_TEXTS),
    Parameter("label_shapes", "LabelShapes", "shape of each label column's batch"),
    Parameter("sample_weight_col", "SampleWeightCol", "name of the column with each row's weight", converter=_TEXT),
    Parameter("validation", "Validation", "fraction of the rows for validation, from 0 to 1, or the name of a column that marks them"),
    Parameter("callbacks", "Callbacks", "callbacks of the training", []),
    Parameter("random_seed", "RandomSeed", "seed of the training and of the order of rows", converter=_INT),
    Parameter("batch_size", "BatchSize", "rows in a batch of one process", 32, _INT),
    Parameter("val_batch_size", "ValBatchSize", "the same for validation; default: batch_size", converter=_INT),
    Parameter("epochs", "Epochs", "number of epochs", 1, _INT),
    Parameter("train_steps_per_epoch", "TrainStepsPerEpoch", "batches of an epoch; default: all rows", converter=_INT),
    Parameter("validation_steps_per_epoch", "ValidationStepsPerEpoch", "batches of a validation; default: all rows", converter=_INT),
    Parameter("shuffle_buffer_size", "ShufflingBufferSize", "rows that are shuffled with one another; 0: none", converter=_INT),
    Parameter("shuffle", "Shuffle", "whether rows are shuffled", True, _BOOLEAN),
    Parameter("verbose", "Verbose", "0: silent, 1: report the training", 1, _INT),
    Parameter("partitions_per_process", "PartitionsPerProcess", "files of prepared data for each process", 10, _INT),
    Parameter("compress_sparse_cols", "CompressSparseCols", "whether columns of sparse vectors are written in a compressed form", False, _BOOLEAN),
    Parameter("run_id", "RunId", "name of the run; a run with a checkpoint in the store continues from it", converter=_TEXT),
    Parameter("transformation_fn", "TransformationFn", "function that changes each row before it is used"),
    Parameter("transformation_edit_fields", "TransformationEditFields", "columns that transformation_fn adds or changes", converter=None),
    Parameter("transformation_removed_fields", "TransformationRemovedFields", "columns that transformation_fn drops", converter=_TEXTS),
    Parameter("train_reader_num_workers", "TrainReaderNumWorker", "accepted: one thread reads ahead", 2, _INT),
    Parameter("val_reader_num_workers", "ValReaderNumWorker", "accepted: one thread reads ahead", 2, _INT),
    Parameter("reader_pool_type", "ReaderPoolType", "accepted: one thread reads ahead", "thread", _TEXT),
    Parameter("inmemory_cache_all", "InMemoryCacheAll", "whether each process keeps its rows in memory", False, _BOOLEAN),
    Parameter("use_gpu", "UseGpu", "whether GPUs are used if there are any", True, _BOOLEAN),
    Parameter("mp_start_method", "MpStartMethod", "start method of multiprocessing in the processes", converter=_TEXT),
    Parameter("backward_passes_per_step", "BackwardPassesPerStep", "batches whose gradients are accumulated for a step", 1, _INT),
    Parameter("data_module", "DataModule", "class that reads the prepared data; default: ParquetDataModule"),
)  # fmt: skip
class EstimatorParams(WithDefaults):
    """The parameters that estimators of all frameworks share."""

    def _check_params(self, metadata: Metadata) -> None:
        """Raises ValueError if the model is missing, a parameter is invalid, or columns have no metadata."""
        if self.getModel() is None:
            raise ValueError("Model parameter is required")
        for name in ("batch_size", "val_batch_size", "backward_passes_per_step"):
            value = self.getOrDefault(getattr(self, name))
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be 1 or more")
        check_validation(self.getValidation())
        check_start_method(self.getMpStartMethod())
        for kind, names in (("Feature", self.getFeatureCols()), ("Label", self.getLabelCols())):
            missing = [name for name in names or [] if name not in metadata]
            if missing:
                raise ValueError(f"{kind} columns {missing} not found in training DataFrame metadata")


@with_parameters(
    Parameter("history", "History", "metrics of each epoch"),
    Parameter("model", "Model", "the trained model"),
    Parameter("feature_columns", "FeatureColumns", "names of the columns that are the model's input"),
    Parameter("label_columns", "LabelColumns", "names of the columns that the model predicts"),
    Parameter("run_id", "RunId", "name of the run that has trained the model", converter=_TEXT),
    Parameter("_metadata", "Metadata", "the columns' types and shapes"),
)
class ModelParams(WithDefaults, HasOutputCols):  # type: ignore[misc]  # pyspark has no types here
    """The parameters that models of all frameworks share."""

    def setOutputCols(self, value: list[str]) -> Any:
        """Sets the names of the columns with the model's predictions; by default LABEL__output.

        Args:
          value: the names.
        """
        return self._set(outputCols=value)

    def setLabelColoumns(self, value: Optional[list[str]]) -> Any:
        """Sets the names of the label columns. Horovod's spelling of `setLabelColumns`.

        Args:
          value: the names.
        """
        return self._set(label_columns=value)

    def _get_metadata(self) -> Any:
        return self.getOrDefault(self._metadata)
