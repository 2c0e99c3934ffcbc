"""Handwritten digits by an estimator on Spark: trains on the rows of a DataFrame, and adds predictions to another one.

    python examples/spark/estimator_on_spark.py --num-proc 2
    python examples/spark/estimator_on_spark.py --framework keras --store runs

With --store the rows and the checkpoints are written to that folder or URL, which the driver and all executors reach; without it
each process gets its rows from its Spark task. Without spark-submit it runs on this machine.
"""

import argparse
import os

from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession, functions

from horovod.spark.common.store import Store


def digits(session):
    """A DataFrame with the columns `features`, a vector of 64 numbers from 0 to 1, and `label`."""
    from sklearn.datasets import load_digits

    data = load_digits()
    rows = [
        (Vectors.dense((image / 16).tolist()), float(label)) for image, label in zip(data.data, data.target.tolist())
    ]
    return session.createDataFrame(rows, ["features", "label"])


def torch_estimator(**common):
    import torch

    import horovod.spark.torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    return horovod.spark.torch.TorchEstimator(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.005),
        loss=lambda output, label: torch.nn.functional.cross_entropy(output, label.long()),
        input_shapes=[[-1, 64]],
        **common,
    )


def keras_estimator(**common):
    import keras

    import horovod.spark.keras

    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10)]
    return horovod.spark.keras.KerasEstimator(
        model=keras.Sequential([keras.Input([64]), *layers]),
        optimizer=keras.optimizers.Adam(0.005),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **common,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--framework", choices=["torch", "keras"], default="torch")
    parser.add_argument("--store", help="a folder or URL")
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    os.environ.setdefault("MASTER", "local[2]")  # unless spark-submit or Spark's configuration names one
    session = SparkSession.builder.appName("digits").getOrCreate()
    train, test = digits(session).randomSplit([0.8, 0.2], seed=1)
    make = {"torch": torch_estimator, "keras": keras_estimator}[args.framework]
    estimator = make(
        num_proc=args.num_proc,
        store=Store.create(args.store) if args.store else None,
        feature_cols=["features"],
        label_cols=["label"],
        batch_size=32,
        epochs=args.epochs,
        validation=0.1,
        random_seed=1,
        verbose=1,
    )
    trained = estimator.fit(train).setOutputCols(["scores"])
    best = functions.udf(lambda scores: float(scores.argmax()), "double")
    predicted = trained.transform(test).withColumn("prediction", best("scores"))
    evaluator = MulticlassClassificationEvaluator(predictionCol="prediction", labelCol="label", metricName="accuracy")
    print(f"test accuracy {evaluator.evaluate(predicted):.1%}")
    session.stop()
