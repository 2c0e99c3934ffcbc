#include "collectives/conformance/conformance.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/inproc/inproc_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"

namespace hvd::collectives::hierarchical {
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

std::unique_ptr<Backend> MakeInproc() { return inproc::MakeInprocBackend(); }
std::unique_ptr<Backend> MakeShm() { return shm::MakeShmBackend(); }

conformance::BackendCase On(const char* name, HostOf host_of, std::unique_ptr<Backend> (*local)(),
                            MakeMesh across) {
  return {
      name, [=] {
        return MakeBackendOnHosts({host_of, [=](const std::string&) { return local(); }, across});
      }};
}

std::string NameOf(const testing::TestParamInfo<conformance::BackendCase>& info) {
  return info.param.name;
}

std::unique_ptr<MeshBackend> MakeSparseGloo() { return tcp::MakeSparseTcpBackend(1); }

using conformance::BackendConformanceTest;
INSTANTIATE_TEST_SUITE_P(
    Hierarchical, BackendConformanceTest,
    testing::Values(On("OneHost", OneHost, MakeShm, tcp::MakeTcpBackend),
                    On("AllApart", AllApart, MakeInproc, inproc::MakeInprocBackend),
                    On("SharingNothing", SharingNothing, MakeInproc, inproc::MakeInprocBackend),
                    On("TwoEach", TwoEach, MakeShm, tcp::MakeTcpBackend),
                    On("TwoEachOverFewLinks", TwoEach, MakeShm, MakeSparseGloo),
                    On("TwoEachInproc", TwoEach, MakeInproc, inproc::MakeInprocBackend),
                    On("ThreeAndOne", ThreeAndOne, MakeShm, tcp::MakeTcpBackend),
                    On("OneAndRest", OneAndRest, MakeInproc, tcp::MakeTcpBackend),
                    On("Interleaved", Interleaved, MakeShm, tcp::MakeTcpBackend)),
    NameOf);

}  // namespace
}  // namespace hvd::collectives::hierarchical
