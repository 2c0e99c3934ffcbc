#include "collectives/gloo/gloo_backend.h"

#include "collectives/conformance/conformance.h"

namespace hvd {
namespace {

INSTANTIATE_TEST_SUITE_P(Gloo, BackendConformanceTest,
                         testing::Values(BackendCase{"gloo", MakeGlooBackend}));

}  // namespace
}  // namespace hvd
