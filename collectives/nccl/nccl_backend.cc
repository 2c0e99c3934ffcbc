#include "collectives/nccl/nccl_backend.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "collectives/nccl/capability_exchange.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/nccl_communicator.h"
#include "collectives/nccl/staged_communicator.h"
#include "collectives/rank_text.h"

namespace hvd::collectives::nccl {
namespace {

absl::StatusOr<std::string> MakeId(const NcclFunctions& nccl, const DeviceStream& stream) {
  const DeviceStream::ScopedDevice device(stream);
  NcclUniqueId id;
  const NcclResult result = nccl.get_unique_id(&id);
  RETURN_IF_ERROR(FromNccl(result, "making an id", nccl.get_error_string(result), ""));
  return std::string(id.internal, sizeof(id.internal));
}

class NcclBackend : public DeviceBackend {
 public:
  // `find` returns the libraries. It is called when they are needed first, so that a program
  // without GPU tensors does not load them.
  NcclBackend(std::function<const absl::StatusOr<GpuLibraries>&()> find,
              const NcclEnvironment& environment, const NcclBounds& limits)
      : find_(std::move(find)), environment_(environment), limits_(limits) {}

  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(const GroupInfo& group, int device,
                                                              KeyExchange& keys,
                                                              const WaitBounds& bounds) override {
    RETURN_IF_ERROR(CheckRank(group));
    auto connected = ConnectPeers(group, device, keys, bounds);
    if (connected.ok()) return connected;
    return ConnectError("nccl", group, connected.status());
  }

  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Stage(int device,
                                                            Communicator& host) override {
    if (environment_.is_only_way) {
      return absl::UnimplementedError(
          "HOROVOD_GPU_OPERATIONS=NCCL_ONLY forbids staging through host memory");
    }
    const absl::StatusOr<GpuLibraries>& libraries = find_();
    // nccl_status is not asked: staging needs the driver alone, and the lack of NCCL is a usual
    // reason for it.
    RETURN_IF_ERROR(libraries.status());
    return MakeStagedCommunicator(libraries->cuda, device, host);
  }

 private:
  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectPeers(const GroupInfo& group,
                                                                   int device, KeyExchange& keys,
                                                                   const WaitBounds& bounds) {
    // One limit for the exchange and for NCCL's own connecting, which gets what is left.
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    std::unique_ptr<DeviceStream> stream;
    const Capabilities hello = MakeHello(group, device, &stream);
    ASSIGN_OR_RETURN(const std::vector<std::string> hellos,
                     keys.AllGather("nccl", EncodeCapabilities(group, hello), bounds.timeout));
    // All ranks decide from the same hellos. So all start NCCL or none does, and none waits in it
    // for the others.
    ASSIGN_OR_RETURN(const NcclUniqueId id, CheckCapabilities(group, hellos));
    ASSIGN_OR_RETURN(
        std::shared_ptr<GuardedComm> session,
        GuardedComm::Connect(*find_(), std::move(stream), NcclPlace{id, group.rank, group.size},
                             limits_, {deadline - Clock::Real().Now(), bounds.cancellation}));
    return std::make_unique<NcclCommunicator>(*find_(), group, device, std::move(session));
  }

  // Opens the device before the exchange, so that a failure is published in it. A rank that skipped
  // the exchange would make the others wait.
  Capabilities MakeHello(const GroupInfo& group, int device,
                         std::unique_ptr<DeviceStream>* stream) {
    const absl::StatusOr<GpuLibraries>& libraries = find_();
    Capabilities hello;
    const auto open = [&]() -> absl::Status {
      if (environment_.is_off) {
        return absl::UnimplementedError("HOROVOD_GPU_OPERATIONS=HOST is set there");
      }
      RETURN_IF_ERROR(libraries.status());
      RETURN_IF_ERROR(libraries->nccl_status);
      ASSIGN_OR_RETURN(*stream, DeviceStream::Create(libraries->cuda, device));
      ASSIGN_OR_RETURN(const std::string uuid, (*stream)->Uuid());
      RETURN_IF_ERROR(FromCuda(libraries->cuda,
                               libraries->cuda.device_get_count(&hello.visible_gpus),
                               "counting devices"));
      // Combined with NCCL's host id: ranks that NCCL takes for different hosts never share a GPU.
      hello.gpu = HmacSha256(environment_.host_id, uuid);
      // Only rank 0 makes an id: it opens a listening socket at which the others meet.
      if (group.rank != 0) return absl::OkStatus();
      ASSIGN_OR_RETURN(hello.id, MakeId(libraries->nccl, **stream));
      return absl::OkStatus();
    };
    const absl::Status opened = open();
    if (opened.ok()) {
      hello.version = libraries->nccl_version;
      hello.shares_gpus = environment_.shares_gpus && hello.version >= kFirstSharingNccl;
    } else {
      hello.problem = std::string(opened.message());
    }
    return hello;
  }

  const std::function<const absl::StatusOr<GpuLibraries>&()> find_;
  const NcclEnvironment environment_;
  const NcclBounds limits_;
};

}  // namespace

std::unique_ptr<DeviceBackend> MakeNcclBackend(const absl::StatusOr<GpuLibraries>& libraries,
                                               const NcclEnvironment& environment,
                                               const NcclBounds& limits) {
  return std::make_unique<NcclBackend>(
      [&libraries]() -> const absl::StatusOr<GpuLibraries>& { return libraries; }, environment,
      limits);
}

std::unique_ptr<DeviceBackend> MakeInstalledNcclBackend(const NcclEnvironment& environment) {
  return std::make_unique<NcclBackend>(&InstalledGpuLibraries, environment, NcclBounds());
}

bool HasCudaDriver() { return InstalledGpuLibraries().ok(); }

int InstalledNcclVersion() {
  const absl::StatusOr<GpuLibraries>& libraries = InstalledGpuLibraries();
  return libraries.ok() ? libraries->nccl_version : 0;
}

}  // namespace hvd::collectives::nccl
