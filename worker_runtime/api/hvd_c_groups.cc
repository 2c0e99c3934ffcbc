// The functions of the C ABI for process groups.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "worker_runtime/api/guarded.h"
#include "worker_runtime/api/hvd_c_api.h"

namespace {

using hvd::worker_runtime::api::Guarded;
using hvd::worker_runtime::api::TheRuntime;

// The longest value that ranks exchange is a list of addresses: some hundred bytes per rank.
constexpr size_t kMostValueBytes = size_t{1} << 20;

class CallersStore : public hvd::worker_runtime::group::Store {
 public:
  explicit CallersStore(const hvd_store& store) : store_(store), room_(kMostValueBytes, '\0') {}

  absl::Status Set(const std::string& key, absl::string_view value) override {
    const auto bytes = static_cast<int64_t>(value.size());
    if (store_.set(store_.context, key.c_str(), value.data(), bytes) == 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the store has not taken the key ", key));
  }

  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override {
    const int64_t bytes = store_.get(store_.context, key.c_str(), absl::ToDoubleSeconds(timeout),
                                     &room_[0], static_cast<int64_t>(room_.size()));
    if (bytes == -1) {
      return absl::DeadlineExceededError(
          absl::StrCat("no rank has set the key ", key, " of the store in time"));
    }
    if (bytes < 0 || bytes > static_cast<int64_t>(room_.size())) {
      return absl::UnavailableError(absl::StrCat("the store has not returned the key ", key));
    }
    return room_.substr(0, bytes);
  }

 private:
  const hvd_store store_;
  std::string room_;
};

}  // namespace

int32_t hvd_open_group(const hvd_group_options* options, const hvd_store* store, int32_t* id) {
  return Guarded([&]() -> absl::Status {
    hvd::worker_runtime::group::ProcessGroupOptions to;
    to.rank = options->rank;
    to.size = options->size;
    to.address = options->address;
    to.name = options->name;
    to.timeout = absl::Seconds(options->timeout_seconds);
    CallersStore callers(*store);
    ASSIGN_OR_RETURN(*id, TheRuntime().OpenGroup(to, callers));
    return absl::OkStatus();
  });
}

int32_t hvd_abort_group(int32_t id, const char* reason) {
  return Guarded([&] { return TheRuntime().AbortGroup(id, reason); });
}

int32_t hvd_close_group(int32_t id) {
  return Guarded([&] { return TheRuntime().CloseGroup(id); });
}

namespace {

using hvd::collectives::messages::Message;
using hvd::collectives::messages::Messenger;
using hvd::collectives::messages::TransferPtr;
using hvd::worker_runtime::group::ProcessGroup;

static_assert(HVD_ANY_SOURCE == hvd::collectives::messages::kAnySource);

// Starts a transfer by start(messenger) with `peer`, which may be HVD_ANY_SOURCE.
template <typename Start>
int32_t StartTransfer(int32_t group, int32_t peer, bool any, Start start, int64_t* transfer) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<ProcessGroup> found, TheRuntime().FindMessaging(group));
    const int size = found->size();
    if (peer >= size || peer < (any ? HVD_ANY_SOURCE : 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no rank ", peer, " in a group of ", size));
    }
    *transfer = TheRuntime().transfers().Add(found, start(*found->messenger()));
    return absl::OkStatus();
  });
}

Message MessageOf(int64_t tag, int32_t type) {
  return {static_cast<uint64_t>(tag), static_cast<uint32_t>(type)};
}

}  // namespace

int32_t hvd_send(int32_t group, int32_t peer, int64_t tag, int32_t type, const void* data,
                 int64_t bytes, int64_t* transfer) {
  const auto start = [&](Messenger& messenger) {
    return messenger.Send(peer, MessageOf(tag, type), data, static_cast<size_t>(bytes));
  };
  return StartTransfer(group, peer, /*any=*/false, start, transfer);
}

int32_t hvd_receive(int32_t group, int32_t source, int64_t tag, int32_t type, void* data,
                    int64_t bytes, int64_t* transfer) {
  const auto start = [&](Messenger& messenger) {
    return messenger.Receive(source, MessageOf(tag, type), data, static_cast<size_t>(bytes));
  };
  return StartTransfer(group, source, /*any=*/true, start, transfer);
}

int32_t hvd_poll_transfer(int64_t transfer, int32_t* done) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const TransferPtr found, TheRuntime().transfers().Find(transfer));
    *done = found->done() ? 1 : 0;
    return absl::OkStatus();
  });
}

int32_t hvd_wait_transfer(int64_t transfer, double seconds, int32_t* source) {
  std::optional<absl::Status> end = absl::OkStatus();
  const int32_t code = Guarded([&] {
    end = TheRuntime().transfers().AwaitEnd(transfer, absl::Seconds(seconds), source);
    return end.value_or(absl::OkStatus());
  });
  return end.has_value() ? code : HVD_STILL_RUNNING;
}

void hvd_forget_transfer(int64_t transfer) { TheRuntime().transfers().Remove(transfer); }
