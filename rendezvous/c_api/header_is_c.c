// The header is C: this compiles it as such, and lets the C++ test compare what both see.
#include "horovod/rendezvous.h"

size_t SizeOfOptionsInC(void) { return sizeof(hvd_rendezvous_job_options); }
int AbiVersionInC(void) { return HVD_RENDEZVOUS_ABI_VERSION; }
