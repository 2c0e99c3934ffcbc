#include "collectives/nccl/nccl_backend.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collectives/nccl/convert.h"
#include "collectives/nccl/device_stream.h"
#include "collectives/nccl/hello.h"
#include "collectives/nccl/nccl_communicator.h"

namespace hvd {
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
  NcclBackend(const absl::StatusOr<GpuLibraries>& libraries, const NcclBounds& limits)
      : libraries_(libraries), limits_(limits) {}

  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> Connect(const GroupInfo& group, int device,
                                                              KeyExchange& keys,
                                                              const WaitBounds& bounds) override {
    if (group.size < 1 || group.rank < 0 || group.rank >= group.size) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no rank ", group.rank, " of ", group.size));
    }
    auto connected = ConnectPeers(group, device, keys, bounds);
    if (connected.ok()) return connected;
    return absl::Status(
        connected.status().code(),
        absl::StrCat("connecting (nccl, rank ", group.rank, " of ", group.size, ", epoch ",
                     group.epoch.value(), "): ", connected.status().message()));
  }

 private:
  absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectPeers(const GroupInfo& group,
                                                                   int device, KeyExchange& keys,
                                                                   const WaitBounds& bounds) {
    const absl::Time deadline = Clock::Real().Now() + bounds.timeout;
    std::unique_ptr<DeviceStream> stream;
    const NcclHello hello = MakeHello(group, device, &stream);
    ASSIGN_OR_RETURN(const std::vector<std::string> hellos,
                     keys.AllGather("nccl", EncodeHello(group, hello), bounds.timeout));
    ASSIGN_OR_RETURN(const NcclUniqueId id, JudgeHellos(group, hellos));
    ASSIGN_OR_RETURN(
        std::shared_ptr<NcclSession> session,
        NcclSession::Connect(*libraries_, std::move(stream), NcclPlace{id, group.rank, group.size},
                             limits_, {deadline - Clock::Real().Now(), bounds.cancellation}));
    return std::make_unique<NcclCommunicator>(*libraries_, group, device, std::move(session));
  }

  // Opens the device, so that peers learn now if that fails.
  NcclHello MakeHello(const GroupInfo& group, int device, std::unique_ptr<DeviceStream>* stream) {
    NcclHello hello;
    const auto open = [&]() -> absl::Status {
      RETURN_IF_ERROR(libraries_.status());
      ASSIGN_OR_RETURN(*stream, DeviceStream::Create(libraries_->cuda, device));
      if (group.rank != 0) return absl::OkStatus();
      ASSIGN_OR_RETURN(hello.id, MakeId(libraries_->nccl, **stream));
      return absl::OkStatus();
    };
    const absl::Status opened = open();
    if (opened.ok()) {
      hello.version = libraries_->nccl_version;
    } else {
      hello.problem = std::string(opened.message());
    }
    return hello;
  }

  const absl::StatusOr<GpuLibraries>& libraries_;
  const NcclBounds limits_;
};

}  // namespace

std::unique_ptr<DeviceBackend> MakeNcclBackend(const absl::StatusOr<GpuLibraries>& libraries,
                                               const NcclBounds& limits) {
  return std::make_unique<NcclBackend>(libraries, limits);
}

std::unique_ptr<DeviceBackend> MakeInstalledNcclBackend() {
  return MakeNcclBackend(InstalledGpuLibraries());
}

int InstalledNcclVersion() {
  const absl::StatusOr<GpuLibraries>& libraries = InstalledGpuLibraries();
  return libraries.ok() ? libraries->nccl_version : 0;
}

}  // namespace hvd
