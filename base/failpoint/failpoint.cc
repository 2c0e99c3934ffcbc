#include "base/failpoint/failpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/status_macros.h"

namespace hvd::failpoint {
namespace {

constexpr char kList[] = "list";
constexpr char kAllOfProgram[] = ".*";
constexpr int kRefused = 2;

enum class Kind { kOff, kPass, kCrash, kDelay, kError };

struct Action {
  Kind kind = Kind::kOff;
  absl::Duration delay;
  uint64_t at = 0;  // the pass at which it is taken; 0: each
};

struct Plan {
  std::array<Action, kCount> actions;
  std::array<std::atomic<uint64_t>, kCount> passes{};
  std::string once;  // the folder; empty: none
};

// The plan that counts. Never deleted, since any thread may use it.
std::atomic<Plan*>& Present() {
  static std::atomic<Plan*> plan{nullptr};
  return plan;
}

bool IsOf(absl::string_view program, size_t point) {
  absl::string_view name = kPoints[point].name;
  return absl::ConsumePrefix(&name, program) && absl::StartsWith(name, ".");
}

absl::Status Malformed(absl::string_view item, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(kVariable, ": '", item, "': ", why));
}

absl::Status ParseAction(absl::string_view item, absl::string_view text, Action& action) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('@', 1));
  if (absl::StrContains(text, '@') && (!absl::SimpleAtoi(parts.second, &action.at) || !action.at)) {
    return Malformed(item, "behind @ there must be a number from 1");
  }
  absl::string_view kind = parts.first;
  if (absl::ConsumePrefix(&kind, "delay:")) {
    action.kind = Kind::kDelay;
    const bool valid = absl::ParseDuration(kind, &action.delay) &&
                       action.delay >= absl::ZeroDuration() &&
                       action.delay < absl::InfiniteDuration();
    return valid ? absl::OkStatus() : Malformed(item, "a delay is a duration such as 300ms");
  }
  for (const auto& [name, value] :
       {std::pair{"off", Kind::kOff}, std::pair{"pass", Kind::kPass},
        std::pair{"crash", Kind::kCrash}, std::pair{"error", Kind::kError}}) {
    if (kind != name) continue;
    action.kind = value;
    return absl::OkStatus();
  }
  return Malformed(item, "the actions are crash, delay:DURATION, error, pass and off");
}

// The points that an item names.
std::vector<size_t> Named(absl::string_view name, Kind kind) {
  std::vector<size_t> named;
  if (const size_t point = Find(name); point < kCount) return {point};
  if (!absl::ConsumeSuffix(&name, kAllOfProgram)) return {};
  for (size_t point = 0; point < kCount; ++point) {
    if (IsOf(name, point) && (kind != Kind::kError || CanFail(point))) named.push_back(point);
  }
  return named;
}

absl::Status TakeItem(absl::string_view program, absl::string_view item, Plan& plan) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('=', 1));
  if (!absl::StrContains(item, '=')) return Malformed(item, "an item is POINT=ACTION");
  if (parts.first == "once") {
    plan.once = std::string(parts.second);
    return absl::OkStatus();
  }
  Action action;
  RETURN_IF_ERROR(ParseAction(item, parts.second, action));
  const std::vector<size_t> named = Named(parts.first, action.kind);
  if (named.empty()) return Malformed(item, "there is no such point");
  for (const size_t point : named) {
    if (action.kind == Kind::kError && !CanFail(point)) {
      return Malformed(item, "nothing can fail there");
    }
    if (IsOf(program, point)) plan.actions[point] = action;
  }
  return absl::OkStatus();
}

// Whether this process is the first one to act there.
bool TakesTurn(const Plan& plan, absl::string_view name) {
  if (plan.once.empty()) return true;
  const std::string mark = absl::StrCat(plan.once, "/", name);
  return Fd(open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).valid();
}

// One write, so that lines of several threads do not mix, and no lock that the thread may hold.
void Say(absl::string_view name, absl::string_view action) {
  WriteAll(STDERR_FILENO, absl::StrCat("failpoint ", name, ": ", action, "\n")).IgnoreError();
}

void Pause(absl::Duration duration) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  Clock::Real().AwaitWithDeadline(mutex, absl::Condition(&never), Clock::Real().Now() + duration);
}

}  // namespace

absl::Status Arm(absl::string_view program, absl::string_view text) {
  auto plan = std::make_unique<Plan>();
  for (const absl::string_view item : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    RETURN_IF_ERROR(TakeItem(program, absl::StripAsciiWhitespace(item), *plan));
  }
  bool any = false;
  for (const Action& action : plan->actions) any = any || action.kind != Kind::kOff;
  Present().store(plan.release());
  armed.store(any);
  return absl::OkStatus();
}

void ArmByVariable(absl::string_view program) {
  const Environment variables = ReadVariables({kVariable});
  const auto found = variables.find(kVariable);
  if (found == variables.end()) return;
  if (found->second == kList) {
    std::fputs(List(program).c_str(), stdout);
    std::fflush(stdout);
    _exit(0);
  }
  const absl::Status status = Arm(program, found->second);
  if (status.ok()) return;
  std::fprintf(stderr, "horovod: %s\n", std::string(status.message()).c_str());
  _exit(kRefused);
}

std::string List(absl::string_view program) {
  std::string list;
  for (size_t point = 0; point < kCount; ++point) {
    if (!IsOf(program, point)) continue;
    absl::StrAppend(&list, kPoints[point].name, CanFail(point) ? " error\n" : "\n");
  }
  return list;
}

absl::Status Act(size_t point) {
  Plan* const plan = Present().load();
  if (plan == nullptr) return absl::OkStatus();
  const Action& action = plan->actions[point];
  const absl::string_view name = kPoints[point].name;
  const uint64_t pass = ++plan->passes[point];
  if (action.kind == Kind::kOff || (action.at != 0 && action.at != pass)) return absl::OkStatus();
  if (!TakesTurn(*plan, name)) return absl::OkStatus();
  switch (action.kind) {
    case Kind::kOff:
    case Kind::kPass:
      return absl::OkStatus();
    case Kind::kDelay:
      Say(name, "delay");
      Pause(action.delay);
      return absl::OkStatus();
    case Kind::kCrash:
      Say(name, "crash");
      kill(getpid(), SIGKILL);
      abort();  // not reached: SIGKILL can't be blocked
    case Kind::kError:
      Say(name, "error");
      return absl::Status(kPoints[point].error, absl::StrCat("failpoint ", name));
  }
  return absl::OkStatus();
}

}  // namespace hvd::failpoint
