#include "rendezvous/membership/root_cause.h"

#include <string.h>  // sigabbrev_np is glibc's, not the standard's

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {
namespace {

// Whether a line begins with the name of a Python exception: "ValueError", "package.Broken: why".
bool NamesException(absl::string_view line) {
  const absl::string_view name = line.substr(0, line.find(": "));
  return !name.empty() && absl::ascii_isalpha(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; });
}

// The exception of the Python traceback with which a process has ended, from its last lines on
// stderr; empty: there is none. For processes that could not report it, as before hvd.init().
std::string ExceptionIn(const std::vector<std::string>& stderr_tail) {
  const auto is_place = [](const std::string& line) { return absl::StartsWith(line, "  File \""); };
  const auto place = std::find_if(stderr_tail.rbegin(), stderr_tail.rend(), is_place);
  if (place == stderr_tail.rend()) return "";
  const auto line = std::find_if(place.base(), stderr_tail.end(), [](const std::string& text) {
    return !absl::StartsWith(text, " ");  // neither code nor marks below it
  });
  if (line == stderr_tail.end() || !NamesException(*line)) return "";
  return phrases::OneLine(*line);
}

std::string SignalMeaning(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return absl::StrCat("killed by signal ", signal);
  return absl::StrCat("killed by signal ", signal, " (SIG", name, ")");
}

}  // namespace

std::string ExitMeaning(const WorkerExited& exited) {
  if (!exited.start_error.empty()) {
    return absl::StrCat("could not be started: ", phrases::OneLine(exited.start_error));
  }
  if (!exited.unknown_end.empty()) return phrases::OneLine(exited.unknown_end);
  if (exited.signal == 0) return absl::StrCat("exit code ", exited.exit_code);
  std::string meaning = SignalMeaning(exited.signal);
  if (exited.core_dumped) absl::StrAppend(&meaning, ", core dumped");
  if (exited.out_of_memory) absl::StrAppend(&meaning, ", out of memory");
  if (!exited.killed_for.empty()) {
    absl::StrAppend(&meaning, " by its agent: ", phrases::OneLine(exited.killed_for));
  }
  return meaning;
}

bool ExitedWithZero(const WorkerExited& exited) {
  return exited.start_error.empty() && exited.signal == 0 && exited.exit_code == 0;
}

int FailureExitCode(const WorkerExited& exited) {
  if (!exited.start_error.empty()) return 1;
  const int code = exited.signal == 0 ? exited.exit_code : 128 + exited.signal;
  return code >= 1 && code <= 255 ? code : 1;
}

RootCause::Failure& RootCause::Of(int rank, const std::string& host) {
  for (Failure& failure : failures_) {
    if (failure.rank == rank) return failure;
  }
  Failure failure;
  failure.rank = rank;
  failure.host = host;
  failures_.push_back(failure);
  return failures_.back();
}

void RootCause::Said(int rank, const std::string& host, absl::string_view exception,
                     bool caused_by_peer) {
  Failure& failure = Of(rank, host);
  failure.exception = phrases::OneLine(exception);
  failure.caused_by_peer = caused_by_peer;
}

void RootCause::Exited(int rank, const std::string& host, const WorkerExited& exited) {
  Failure& failure = Of(rank, host);
  failure.end = ExitedWithZero(exited) ? End::kWithZero : End::kInFailure;
  failure.meaning = phrases::OneLine(ExitMeaning(exited));
  failure.exit_code = FailureExitCode(exited);
  failure.stderr_tail = exited.stderr_tail;
  const bool by_itself = exited.signal == 0 && exited.exit_code != 0;
  if (failure.exception.empty() && by_itself) failure.exception = ExceptionIn(exited.stderr_tail);
}

void RootCause::Left(int rank, const std::string& host) {
  Failure left;
  left.rank = rank;
  left.host = host;
  left_.push_back(left);
}

void RootCause::Returned(int rank) {
  left_.erase(std::remove_if(left_.begin(), left_.end(),
                             [rank](const Failure& left) { return left.rank == rank; }),
              left_.end());
}

void RootCause::HostLost(const std::string& host, absl::string_view reason) {
  const std::string meaning = absl::StrCat("host ", host, " was lost: ", phrases::OneLine(reason));
  for (Failure& failure : failures_) {
    if (failure.host != host || failure.ended()) continue;
    failure.end = End::kInFailure;
    failure.meaning = meaning;
  }
  Failure lost;
  lost.host = host;
  lost.end = End::kInFailure;
  lost.meaning = meaning;
  failures_.push_back(lost);
}

// An exit is a fact and stays; only a report without an exit is removed.
void RootCause::Retract(int rank) {
  failures_.erase(std::remove_if(failures_.begin(), failures_.end(),
                                 [rank](const Failure& f) { return f.rank == rank && !f.ended(); }),
                  failures_.end());
}

bool RootCause::HasEnd() const {
  return std::any_of(failures_.begin(), failures_.end(),
                     [](const Failure& f) { return f.ended(); });
}

// The first failure in the list that is not a consequence can't be preceded by a later event, since
// failures keep the order of their first events. Only a choice made for lack of such a failure may
// still change.
bool RootCause::IsCertain() const {
  return HasEnd() && Chosen().ended() && !Chosen().caused_by_peer;
}

const RootCause::Failure& RootCause::Chosen() const {
  const auto cause = std::find_if(failures_.begin(), failures_.end(),
                                  [](const Failure& f) { return !f.caused_by_peer; });
  return cause != failures_.end() ? *cause : failures_.front();
}

// The worker that left cleanly and whose absence caused the chosen failure; null: none. Matches the
// engine's message "Rank N left first" (worker_runtime/engine/engine_end.cc).
const RootCause::Failure* RootCause::LeftFirst() const {
  const Failure& cause = Chosen();
  if (!cause.caused_by_peer) return nullptr;
  const auto left = std::find_if(left_.begin(), left_.end(), [&cause](const Failure& f) {
    return absl::StrContains(cause.exception, absl::StrCat("Rank ", f.rank, " left first"));
  });
  return left == left_.end() ? nullptr : &*left;
}

// Moves the blame from the worker that failed to the one that left.
void RootCause::Blame(const Failure& left, Verdict& verdict) const {
  verdict.summary =
      absl::StrCat(phrases::RankOnHost(left.rank, left.host),
                   " left first: its script came to its end, or called "
                   "sys.exit(0), while ",
                   phrases::RankOnHost(verdict.rank, verdict.host), " still needed it");
  verdict.rank = left.rank;
  verdict.host = left.host;
  verdict.exit_meaning = "exit code 0";
  verdict.exception.clear();
  verdict.stderr_tail.clear();
  verdict.consequences = static_cast<int>(failures_.size());
}

std::string RootCause::Summary(const Failure& failure) {
  if (failure.rank < 0) return failure.meaning;
  const std::string who = phrases::RankOnHost(failure.rank, failure.host);
  if (!failure.exception.empty()) {
    return absl::StrCat(who, " failed: ", failure.exception, " (", failure.meaning, ")");
  }
  if (failure.end == End::kWithZero) {
    return absl::StrCat(who,
                        " exited with code 0 without having finished: its script neither "
                        "called hvd.shutdown() nor came to its end");
  }
  return absl::StrCat(who, " failed: ", failure.meaning);
}

Verdict RootCause::Build() const {
  const Failure& cause = Chosen();
  Verdict verdict;
  verdict.exit_code = cause.exit_code;
  verdict.summary = Summary(cause);
  verdict.rank = cause.rank;
  verdict.host = cause.host;
  verdict.exit_meaning = cause.meaning;
  verdict.exception = cause.exception;
  verdict.stderr_tail = cause.stderr_tail;
  verdict.consequences = static_cast<int>(
      std::count_if(failures_.begin(), failures_.end(),
                    [&cause](const Failure& f) { return f.rank >= 0 && &f != &cause; }));
  if (const Failure* const left = LeftFirst()) Blame(*left, verdict);
  return verdict;
}

}  // namespace hvd::rendezvous::membership
