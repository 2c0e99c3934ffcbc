#include "collectives/inproc/inproc_backend.h"

#include "collectives/conformance/conformance.h"

namespace hvd {
namespace {

INSTANTIATE_TEST_SUITE_P(Inproc, BackendConformanceTest,
                         testing::Values(BackendCase{"inproc", MakeInprocBackend}));

}  // namespace
}  // namespace hvd
