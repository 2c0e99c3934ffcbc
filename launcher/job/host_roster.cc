#include "launcher/job/host_roster.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hvd::launcher::job {

std::vector<std::string> HostRoster::SetHosts(const std::vector<std::string>& hosts) {
  const std::set<std::string> listed(hosts.begin(), hosts.end());
  std::vector<std::string> gone;
  for (auto entry = hosts_.begin(); entry != hosts_.end();) {
    auto& [name, host] = *entry;
    const bool goes = host.listed && listed.count(name) == 0;
    if (goes && host.has_agent) gone.push_back(name);
    if (goes) host.listed = false;
    entry = host.listed || host.has_agent ? std::next(entry) : hosts_.erase(entry);
  }
  for (const std::string& name : listed) {
    Host& host = hosts_[name];
    host.listed_anew = host.listed_anew || !host.listed;
    host.listed = true;
  }
  return gone;
}

std::vector<std::string> HostRoster::Due(absl::Time now) const {
  std::vector<std::string> due;
  for (const auto& [name, host] : hosts_) {
    if (Wants(host) && host.next_try <= now) due.push_back(name);
  }
  return due;
}

absl::Time HostRoster::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, host] : hosts_) {
    if (Wants(host)) next = std::min(next, host.next_try);
  }
  return next;
}

void HostRoster::Started(const std::string& name) {
  Host& host = hosts_[name];
  host.has_agent = true;
  host.listed_anew = false;
  host.ready_since = absl::InfiniteFuture();
}

void HostRoster::Ready(const std::string& name, absl::Time now) {
  hosts_[name].ready_since = now;
  hosts_[name].refused = false;
}

void HostRoster::Left(const std::string& name) {
  Host& host = hosts_[name];
  host.has_agent = false;
  host.left = !host.listed_anew;
  host.pause = kFirstPause;
  host.next_try = absl::InfinitePast();
  if (!host.listed) hosts_.erase(name);
}

bool HostRoster::Failed(const std::string& name, const std::string& why, bool refused,
                        absl::Time now) {
  Host& host = hosts_[name];
  host.has_agent = false;
  if (!host.listed) {
    hosts_.erase(name);
    return false;
  }
  // An agent that has worked for this long clears the host's earlier failures.
  if (now - host.ready_since >= kLongestPause) host.pause = kFirstPause;
  host.next_try = now + host.pause;
  host.pause = std::min(2 * host.pause, kLongestPause);
  host.refused = refused;
  const bool is_new = why != host.why;
  host.why = why;
  return is_new;
}

std::string HostRoster::WhyNone() const {
  std::vector<std::string> reasons;
  for (const auto& [name, host] : hosts_) {
    if (host.has_agent && host.ready_since != absl::InfiniteFuture()) return "";
    if (!host.listed) continue;
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
    return entry.second.refused && !entry.second.has_agent;
  });
}

}  // namespace hvd::launcher::job
