"""Names of classes, for messages."""


def with_article(value: object) -> str:
    """Returns the name of `value`'s class with its article, such as "an ElasticSampler"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOaeio" else f"a {name}"


def class_of(value: object) -> str:
    """Returns the name of `value`'s class with its module, such as torch.optim.sgd.SGD."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
