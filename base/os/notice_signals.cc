#include "base/os/notice_signals.h"

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

}  // namespace hvd::os
