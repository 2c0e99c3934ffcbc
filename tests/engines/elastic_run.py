"""An elastic job of an engine on a separate thread, with its output, for tests that read along."""

import threading

from engine_output import Output


class ElasticRun:
    """`run_elastic(fn, arguments, **options)` on a thread. `stdout` and `stderr` are the job's."""

    def __init__(self, run_elastic, fn, *arguments, **options):
        self.stdout, self.stderr = Output(), Output()
        self._results, self._error = None, None

        def run():
            try:
                self._results = run_elastic(fn, arguments, stdout=self.stdout, stderr=self.stderr, **options)
            except Exception as error:
                self._error = error
            finally:
                self.stdout.close()
                self.stderr.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def results(self, timeout=300):
        self._thread.join(timeout)
        assert not self._thread.is_alive(), self.stdout.text + self.stderr.text
        if self._error is not None:
            raise AssertionError(self.stderr.text) from self._error
        return self._results
