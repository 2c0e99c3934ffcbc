#include "tests/gpu/simulated/nccl/introduction.h"

#include <cstdlib>
#include <cstring>

#include "collectives/nccl/abi.h"
#include "tests/gpu/simulated/driver/cuda_driver.h"

namespace simulated_gpu {
namespace {

constexpr int kDefaultVersion = 23003;

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool SharesGpu() {
  return Environment("NCCL_MULTI_RANK_GPU_ENABLE") == "1" &&
         SimulatedNcclVersion() >= hvd::collectives::nccl::kFirstSharingNccl;
}

}  // namespace

int SimulatedNcclVersion() {
  const std::string version = Environment("SIMULATED_NCCL_VERSION");
  return version.empty() ? kDefaultVersion : std::atoi(version.c_str());
}

Introduction Introduction::Of(int device) {
  Introduction own = {};
  own.version = SimulatedNcclVersion();
  own.shares_gpu = SharesGpu();
  std::strncpy(own.host, Environment("NCCL_HOSTID").c_str(), sizeof(own.host) - 1);
  CudaUuid uuid;
  cuDeviceGetUuid(&uuid, device);
  std::memcpy(own.gpu, uuid.bytes, sizeof(own.gpu));
  return own;
}

Mesh::Outcome Introduction::Exchange(Mesh& mesh, std::vector<Introduction>* all) const {
  Introduction own = *this;
  own.size = mesh.size();
  std::vector<Transfer> sends, receives;
  for (int peer = 0; peer < mesh.size(); ++peer) {
    sends.push_back({peer, &own, sizeof(own)});
    receives.push_back({peer, &(*all)[peer], sizeof(own)});
  }
  return mesh.Exchange(sends, receives);
}

std::string Introduction::FindProblem(const std::vector<Introduction>& all, int rank) const {
  for (size_t peer = 0; peer < all.size(); ++peer) {
    const Introduction& other = all[peer];
    if (other.version != version) return "rank " + std::to_string(peer) + " has another version";
    if (other.size != static_cast<int>(all.size())) {
      return "rank " + std::to_string(peer) + " counts other ranks";
    }
    const bool is_same = std::memcmp(other.gpu, gpu, sizeof(gpu)) == 0 &&
                         std::memcmp(other.host, host, sizeof(host)) == 0;
    if (is_same && static_cast<int>(peer) != rank && !(shares_gpu && other.shares_gpu)) {
      return "Duplicate GPU: ranks " + std::to_string(rank) + " and " + std::to_string(peer);
    }
  }
  return "";
}

}  // namespace simulated_gpu
