#include "base/os/signals.h"

#include <algorithm>

namespace hvd::os {

bool IsNotice(int signal) {
  return std::find(kNoticeSignals.begin(), kNoticeSignals.end(), signal) != kNoticeSignals.end();
}

void AddNotices(sigset_t& set) {
  for (const int signal : kNoticeSignals) sigaddset(&set, signal);
}

void BlockNotices() {
  sigset_t set;
  sigemptyset(&set);
  AddNotices(set);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // After they are blocked. The kernel drops ignored signals even if they are blocked.
  for (const int number : kNoticeSignals) signal(number, SIG_DFL);
}

void IgnoreNotices() {
  for (const int number : kNoticeSignals) signal(number, SIG_IGN);
}

bool IsIgnored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

void AddUnlessIgnored(sigset_t& set, int signal) {
  if (!IsIgnored(signal)) sigaddset(&set, signal);
}

}  // namespace hvd::os
