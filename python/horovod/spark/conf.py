"""Settings of Spark that jobs of ``horovod.spark.run_elastic`` need or may need: pairs for ``SparkConf.set``. Spark's
name for the list of bad executors is "excludeOnFailure" since 3.1; it was "blacklist"."""

SPARK_CONF_MAX_INT = "2147483647"
SPARK_CONF_MAX_INT_MINUS_ONE = "2147483646"

_EXCLUDE = "spark.excludeOnFailure."
_TASKS_OF_STAGE = _EXCLUDE + "stage.maxFailedTasksPerExecutor"
_EXECUTORS_OF_STAGE = _EXCLUDE + "stage.maxFailedExecutorsPerNode"
_TASK_ON_EXECUTOR = _EXCLUDE + "task.maxTaskAttemptsPerExecutor"
_TASK_ON_NODE = _EXCLUDE + "task.maxTaskAttemptsPerNode"
_TASKS_OF_APP = _EXCLUDE + "application.maxFailedTasksPerExecutor"
_EXECUTORS_OF_APP = _EXCLUDE + "application.maxFailedExecutorsPerNode"

# A lost executor counts as a failure of its tasks; the job has limits of its own.
SPARK_CONF_ALWAYS_RESTART_FAILED_TASK = ("spark.task.maxFailures", SPARK_CONF_MAX_INT)

SPARK_CONF_BLACKLIST_DISABLED = (_EXCLUDE + "enabled", "false")
SPARK_CONF_BLACKLIST_ENABLED = (_EXCLUDE + "enabled", "true")

# Whether tasks of a stage may go where one has failed: to that executor, to that node.
SPARK_CONF_REUSE_FAILED_EXECUTOR = (_TASKS_OF_STAGE, SPARK_CONF_MAX_INT)
SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR = (_TASKS_OF_STAGE, "1")
SPARK_CONF_REUSE_FAILING_NODE = (_EXECUTORS_OF_STAGE, SPARK_CONF_MAX_INT_MINUS_ONE)
SPARK_CONF_DONT_REUSE_FAILING_NODE = (_EXECUTORS_OF_STAGE, "1")

# The same for the very task that has failed.
SPARK_CONF_REUSE_EXECUTOR_ALWAYS_FOR_SAME_TASK = (_TASK_ON_EXECUTOR, SPARK_CONF_MAX_INT)
SPARK_CONF_REUSE_EXECUTOR_ONCE_FOR_SAME_TASK = (_TASK_ON_EXECUTOR, "2")
SPARK_CONF_DONT_REUSE_EXECUTOR_FOR_SAME_TASK = (_TASK_ON_EXECUTOR, "1")
SPARK_CONF_REUSE_NODE_ALWAYS_FOR_SAME_TASK = (_TASK_ON_NODE, SPARK_CONF_MAX_INT_MINUS_ONE)
SPARK_CONF_REUSE_NODE_ONCE_FOR_SAME_TASK = (_TASK_ON_NODE, "2")
SPARK_CONF_DONT_REUSE_NODE_FOR_SAME_TASK = (_TASK_ON_NODE, "1")

# The same for all tasks of the application.
SPARK_CONF_REUSE_FAILED_EXECUTOR_IN_APP = (_TASKS_OF_APP, SPARK_CONF_MAX_INT)
SPARK_CONF_DONT_REUSE_FAILED_EXECUTOR_IN_APP = (_TASKS_OF_APP, "1")
SPARK_CONF_REUSE_FAILING_NODE_IN_APP = (_EXECUTORS_OF_APP, SPARK_CONF_MAX_INT)
SPARK_CONF_DONT_REUSE_FAILING_NODE_IN_APP = (_EXECUTORS_OF_APP, "1")

# What Spark takes without them.
SPARK_CONF_DEFAULT_VALUES = {
    "spark.task.maxFailures": "4",
    _EXCLUDE + "enabled": "false",
    _TASKS_OF_STAGE: "2",
    _EXECUTORS_OF_STAGE: "2",
    _TASK_ON_EXECUTOR: "1",
    _TASK_ON_NODE: "2",
    _TASKS_OF_APP: "2",
    _EXECUTORS_OF_APP: "2",
}
