#include "collectives/gloo/gloo_backend.h"

#include "collectives/conformance/conformance.h"
#include "collectives/conformance/memory_key_exchange.h"

namespace hvd::collectives::gloo {
namespace {

// A last message that Gloo has not delivered before the connection closes is lost, so a rank may
// name another peer than the one that has failed first.
using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(Gloo, BackendConformanceTest,
                         testing::Values(conformance::BackendCase{"gloo", MakeGlooBackend,
                                                                  /*names_peers=*/false}));

}  // namespace
}  // namespace hvd::collectives::gloo
