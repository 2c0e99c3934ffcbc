#include "collectives/inproc/inproc_backend.h"

#include "collectives/conformance/conformance.h"

namespace hvd::collectives::inproc {
namespace {

using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(Inproc, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{"inproc", MakeInprocBackend}));

}  // namespace
}  // namespace hvd::collectives::inproc
