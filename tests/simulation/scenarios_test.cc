// Runs the scenarios in testdata/. After a change in behaviour:
//   bazel run //tests/simulation:scenarios_test -- --rewrite
#include <memory>

#include "tests/simulation/cluster_sim.h"
#include "tests/support/datadriven.h"

int main(int argc, char** argv) {
  return hvd::DataDrivenMain(argc, argv, [] {
    const auto sim = std::make_shared<hvd::ClusterSim>();
    return [sim](hvd::Command& command) { return sim->Run(command); };
  });
}
