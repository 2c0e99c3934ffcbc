#include "collectives/conformance/conformance.h"
#include "collectives/gloo/gloo_backend.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/inproc/inproc_backend.h"

namespace hvd {
namespace {

std::string OneHost(int rank) { return "host"; }
std::string AllApart(int rank) { return std::to_string(rank); }
std::string SharingNothing(int rank) { return ""; }
std::string TwoEach(int rank) { return std::to_string(rank / 2); }
std::string ThreeAndOne(int rank) { return std::to_string(rank / 3); }
std::string OneAndRest(int rank) { return rank == 0 ? "first" : "rest"; }
std::string Interleaved(int rank) { return std::to_string(rank % 2); }

using HostOf = std::string (*)(int);
using MakeMesh = std::unique_ptr<MeshBackend> (*)();

BackendCase On(const char* name, HostOf host_of, MakeMesh across) {
  return {name, [=] {
            return MakeBackendOnHosts(
                {host_of, [](const std::string&) { return MakeInprocBackend(); }, across});
          }};
}

std::string NameOf(const testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Hierarchical, BackendConformanceTest,
                         testing::Values(On("OneHost", OneHost, MakeGlooBackend),
                                         On("AllApart", AllApart, MakeInprocBackend),
                                         On("SharingNothing", SharingNothing, MakeInprocBackend),
                                         On("TwoEach", TwoEach, MakeGlooBackend),
                                         On("TwoEachInproc", TwoEach, MakeInprocBackend),
                                         On("ThreeAndOne", ThreeAndOne, MakeGlooBackend),
                                         On("OneAndRest", OneAndRest, MakeGlooBackend),
                                         On("Interleaved", Interleaved, MakeGlooBackend)),
                         NameOf);

}  // namespace
}  // namespace hvd
