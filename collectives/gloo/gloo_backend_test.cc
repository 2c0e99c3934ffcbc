#include "collectives/gloo/gloo_backend.h"

#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"

namespace hvd::collectives::gloo {
namespace {

using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(Gloo, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{"gloo", MakeGlooBackend}));

}  // namespace
}  // namespace hvd::collectives::gloo
