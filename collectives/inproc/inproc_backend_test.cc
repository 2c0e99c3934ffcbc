#include "collectives/inproc/inproc_backend.h"

#include "collectives/conformance/conformance.h"

namespace hvd::collectives::inproc {
namespace {

INSTANTIATE_TEST_SUITE_P(Inproc, conformance::BackendConformanceTest,
                         testing::Values(conformance::BackendCase{"inproc", MakeInprocBackend}));

}  // namespace
}  // namespace hvd::collectives::inproc
