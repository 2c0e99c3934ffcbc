#include "worker_runtime/group/process_group.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "collectives/messages/given_up.h"
#include "collectives/peer/peer_port.h"
#include "worker_runtime/negotiation/stall.h"

namespace hvd::worker_runtime::group {
namespace {

// A process group has no epochs: when it breaks, its ranks make another one.
const Epoch kOnlyEpoch(1);
constexpr size_t kSecretBytes = 32;
// Beside the collectives' id, 0, at the same port.
constexpr int kMessengersId = 1;

// Rank 0 chooses the secret.
absl::StatusOr<std::string> SecretOf(const ProcessGroupOptions& options, Store& store) {
  constexpr char kKey[] = "secret";
  if (options.rank != 0) {
    ASSIGN_OR_RETURN(const std::string hex, store.Get(kKey, options.timeout));
    return absl::HexStringToBytes(hex);
  }
  std::string secret = RandomBytes(kSecretBytes);
  RETURN_IF_ERROR(store.Set(kKey, absl::BytesToHexString(secret)));
  return secret;
}

// The address and port of rank 0.
absl::StatusOr<ControlRoot> RootOf(const ProcessGroupOptions& options, int port,
                                   collectives::KeyExchange& keys) {
  const std::string own = absl::StrCat(port, " ", options.address);
  ASSIGN_OR_RETURN(const collectives::KeyExchange::Selected root,
                   keys.Gather("address", own, {0}, options.timeout));
  const absl::string_view text = root.values[0];
  const size_t space = text.find(' ');
  ControlRoot result;
  if (space == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, space), &result.port)) {
    return absl::InternalError("the store has returned no address of rank 0");
  }
  result.address = std::string(text.substr(space + 1));
  return result;
}

}  // namespace

ProcessGroup::ProcessGroup(const ProcessGroupOptions& options, const settings::RuntimeEnv& env)
    : options_(options),
      logger_(MakeLogger(absl::StrCat("horovod[", options.rank, "]"), env.log_level,
                         env.log_hide_time)) {}

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Connect(
    const ProcessGroupOptions& options, const settings::RuntimeEnv& env,
    collectives::Backend& backend, const std::string& host_identity, Store& store) {
  std::unique_ptr<ProcessGroup> result(new ProcessGroup(options, env));
  RETURN_IF_ERROR(result->ConnectPlanes(env, backend, host_identity, store));
  return result;
}

absl::Status ProcessGroup::ConnectPlanes(const settings::RuntimeEnv& env,
                                         collectives::Backend& backend,
                                         const std::string& host_identity, Store& store) {
  StoreExchange keys(store, options_.rank, options_.size);
  ASSIGN_OR_RETURN(const std::string secret, SecretOf(options_, store));
  ASSIGN_OR_RETURN(std::shared_ptr<collectives::peer::PeerPort> port,
                   collectives::peer::PeerPort::Open(options_.address));
  ASSIGN_OR_RETURN(const ControlRoot root, RootOf(options_, port->number(), keys));
  collectives::GroupInfo group;
  group.epoch = kOnlyEpoch;
  group.rank = options_.rank;
  group.size = options_.size;
  group.address = options_.address;
  group.secret = options_.job_secret.empty() ? secret : HmacSha256(options_.job_secret, secret);
  group.tls = options_.tls;
  group.port = std::move(port);
  group.on_choice = [logger = logger_](const std::string& choice) { logger->info(choice); };
  ASSIGN_OR_RETURN(
      group_, ConnectedGroup::Connect(group, backend, keys, root, WaitBounds(options_.timeout)));
  RETURN_IF_ERROR(ConnectMessenger(group, keys, host_identity));
  // A rank that failed to connect closes its connections, which a running engine would report as a
  // lost rank.
  RETURN_IF_ERROR(keys.Gather("connected", "", {}, options_.timeout).status());
  group_->Start(EngineOptionsOf(env), nullptr);
  return absl::OkStatus();
}

absl::Status ProcessGroup::ConnectMessenger(collectives::GroupInfo group,
                                            collectives::KeyExchange& keys,
                                            const std::string& host_identity) {
  if (group.size == 1) return absl::OkStatus();
  group.id = kMessengersId;
  group.secret = HmacSha256(group.secret, "messages");
  ASSIGN_OR_RETURN(messenger_, collectives::messages::Messenger::Connect(
                                   group, keys, WaitBounds(options_.timeout), host_identity));
  return absl::OkStatus();
}

engine::EngineOptions ProcessGroup::EngineOptionsOf(const settings::RuntimeEnv& env) {
  engine::EngineOptions options;
  options.settings = env.engine;
  options.settings.stall_check = true;
  options.settings.stall_shutdown_time = options_.timeout;
  options.collective_timeout = std::min(env.gloo_timeout, options_.timeout);
  options.on_warning = [logger = logger_](const std::string& text) { logger->warn(text); };
  options.on_stall = [this](const negotiation::StallReport& report) { OnStall(report); };
  options.on_end = [this](const absl::Status& why, bool left, std::optional<int>) {
    OnEnd(why, left);
  };
  if (!options_.name.empty()) options.ranks_note = absl::StrCat(" (ranks of ", options_.name, ")");
  return options;
}

// A rank that has left cleanly has sent all its messages, which can still be received.
void ProcessGroup::OnEnd(const absl::Status& why, bool left) {
  {
    absl::MutexLock lock(&mutex_);
    engine_has_ended_ = true;
    if (!left) end_ = why;
  }
  if (!left && messenger_ != nullptr) messenger_->Abort(why);
}

// The engine notices the end of a rank as well, and tells all ranks the cause. If it were aborted
// because the messenger was first, its peers would take this rank for the cause.
absl::Status ProcessGroup::CauseOf(const absl::Status& error) {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  if (error.ok() || !messenger_->broken()) return error;
  {
    absl::MutexLock lock(&mutex_);
    if (left_) return error;
    // The other ranks must know before the caller may end this process.
    const auto has_ended = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return engine_has_ended_; };
    Clock::Real().AwaitWithDeadline(mutex_, absl::Condition(&has_ended),
                                    Clock::Real().Now() + kPatience);
    if (engine_has_ended_) {
      return end_.ok() || !collectives::messages::IsGivenUp(error) ? error : end_;
    }
  }
  engine()->Abort(error);
  return error;
}

void ProcessGroup::OnStall(const negotiation::StallReport& report) {
  const std::string text =
      absl::StrCat(negotiation::StallText(report),
                   options_.name.empty() ? "" : absl::StrCat(" (of ", options_.name, ")"));
  if (!report.give_up) return logger_->warn(text);
  Abort(absl::DeadlineExceededError(
      absl::StrCat("The timeout of ", text::DurationText(options_.timeout), " is over. ", text)));
}

// The engine first, whose end uses the messenger.
void ProcessGroup::Leave() {
  absl::MutexLock leaving(&leave_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    left_ = true;
  }
  if (group_ != nullptr) group_->Shutdown();
  if (messenger_ != nullptr) messenger_->Leave();
}

ProcessGroup::~ProcessGroup() { Leave(); }

}  // namespace hvd::worker_runtime::group
