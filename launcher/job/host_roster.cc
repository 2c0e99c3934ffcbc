#include "launcher/job/host_roster.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::launcher::job {

bool HostRoster::HasAgent(const Host& host) {
  switch (host.state) {
    case State::kRunning:
    case State::kUnlisted:
    case State::kRelisted:
      return true;
    case State::kWanted:
    case State::kRefused:
    case State::kLeft:
      return false;
  }
  return false;
}

std::vector<std::string> HostRoster::SetHosts(const std::vector<std::string>& hosts) {
  const std::set<std::string> listed(hosts.begin(), hosts.end());
  std::vector<std::string> gone;
  for (auto entry = hosts_.begin(); entry != hosts_.end();) {
    auto& [name, host] = *entry;
    const bool is_listed = listed.count(name) > 0;
    if (!is_listed && !HasAgent(host)) {
      entry = hosts_.erase(entry);
      continue;
    }
    if (!is_listed && host.state != State::kUnlisted) {
      host.state = State::kUnlisted;
      gone.push_back(name);
    }
    ++entry;
  }
  for (const std::string& name : listed) {
    Host& host = hosts_[name];
    // Its agent is about to end, since the daemon drains it. The next one starts after that.
    if (host.state == State::kUnlisted) host.state = State::kRelisted;
  }
  return gone;
}

std::vector<std::string> HostRoster::Due(absl::Time now) const {
  std::vector<std::string> due;
  for (const auto& [name, host] : hosts_) {
    if (NeedsAgent(host) && host.next_try <= now) due.push_back(name);
  }
  return due;
}

absl::Time HostRoster::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, host] : hosts_) {
    if (NeedsAgent(host)) next = std::min(next, host.next_try);
  }
  return next;
}

void HostRoster::Started(const std::string& name) {
  Host& host = hosts_[name];
  host.state = State::kRunning;
  host.ready_since = absl::InfiniteFuture();
}

void HostRoster::Ready(const std::string& name, absl::Time now) { hosts_[name].ready_since = now; }

void HostRoster::Left(const std::string& name) {
  Host& host = hosts_[name];
  if (host.state == State::kUnlisted) {
    hosts_.erase(name);
    return;
  }
  host.state = host.state == State::kRelisted ? State::kWanted : State::kLeft;
  host.pause = kFirstPause;
  host.next_try = absl::InfinitePast();
}

bool HostRoster::Failed(const std::string& name, const std::string& why, bool refused,
                        absl::Time now) {
  Host& host = hosts_[name];
  if (host.state == State::kUnlisted) {
    hosts_.erase(name);
    return false;
  }
  // Exponential back-off. An agent that was ready for at least kLongestPause resets it.
  if (now - host.ready_since >= kLongestPause) host.pause = kFirstPause;
  host.next_try = now + host.pause;
  host.pause = std::min(2 * host.pause, kLongestPause);
  host.state = refused ? State::kRefused : State::kWanted;
  // The same reason is reported once, not at each attempt.
  const bool is_new = why != host.why;
  host.why = why;
  return is_new;
}

std::string HostRoster::WhyNone() const {
  std::vector<std::string> reasons;
  for (const auto& [name, host] : hosts_) {
    if (HasAgent(host) && host.ready_since != absl::InfiniteFuture()) return "";
    if (host.state == State::kUnlisted) continue;
    if (host.why.empty()) {
      reasons.push_back(absl::StrCat(name, ": no answer yet"));
    } else {
      const bool names_host = absl::StartsWith(host.why, absl::StrCat(name, ":"));
      reasons.push_back(names_host ? host.why : absl::StrCat(name, ": ", host.why));
    }
  }
  return absl::StrJoin(reasons, "; ");
}

bool HostRoster::AllRefused() const {
  return !hosts_.empty() && std::all_of(hosts_.begin(), hosts_.end(), [](const auto& entry) {
    return entry.second.state == State::kRefused;
  });
}

}  // namespace hvd::launcher::job
