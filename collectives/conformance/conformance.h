// The conformance test suite of all backends. A backend's test instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Gloo, BackendConformanceTest, testing::Values(BackendCase{"gloo",
//   MakeGlooBackend}));
#ifndef COLLECTIVES_CONFORMANCE_CONFORMANCE_H_
#define COLLECTIVES_CONFORMANCE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/backend.h"
#include "collectives/conformance/rank_group.h"
#include "gtest/gtest.h"

namespace hvd::collectives::conformance {

struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  bool names_peers = true;  // whether errors name the peer that has failed
};
inline std::ostream& operator<<(std::ostream& out, const BackendCase& c) { return out << c.name; }

class BackendConformanceTest : public testing::TestWithParam<BackendCase> {
 protected:
  RankGroup group_{GetParam().make()};
};

// One operation by name, called with a few elements, for tests that cover all operations.
struct AnyOperation {
  const char* name;
  // `peer` is the peer of a send-receive and the root of a broadcast.
  absl::Status (*call)(Communicator& communicator, int peer, const CallOptions& options);
};
const std::vector<AnyOperation>& AllOperations();

}  // namespace hvd::collectives::conformance

#endif  // COLLECTIVES_CONFORMANCE_CONFORMANCE_H_
