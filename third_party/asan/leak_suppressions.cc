// Leaks of libraries that are not ours, which LeakSanitizer does not report.

// gRPC ends its name resolver without c-ares' clean-up: a few bytes for each resolver.
extern "C" const char* __lsan_default_suppressions() { return "leak:libcares"; }
