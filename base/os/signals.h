// Kinds of signals: the notices of schedulers, and what this process ignores.
#ifndef BASE_OS_SIGNALS_H_
#define BASE_OS_SIGNALS_H_

#include <signal.h>

#include <array>

namespace hvd::os {

// The signals by which schedulers announce something to a job: the end of its time, a suspension.
// Slurm's --signal, Grid Engine's -notify and LSF's limits send SIGUSR1 and SIGUSR2 to all
// processes of a job, and limits of CPU time SIGXCPU. Their default action ends a process, although
// they are meant for scripts. So launcher and agents pass them on to the workers that have a
// handler, and no other process of ours ends by them.
inline constexpr std::array<int, 3> kNoticeSignals = {SIGUSR1, SIGUSR2, SIGXCPU};

bool IsNotice(int signal);

void AddNotices(sigset_t& set);

// Blocks them in the calling thread and in threads that it starts later. They stay pending, also if
// the starter of this process ignored them.
void BlockNotices();

// Ignores them: for processes that have no workers.
void IgnoreNotices();

// Whether this process ignores the signal. A program inherits that from its starter, as SIGHUP from
// nohup. To block such a signal would undo it: the kernel keeps every blocked signal for whoever
// reads it.
bool IsIgnored(int signal);

// Adds the signal to the set unless this process ignores it.
void AddUnlessIgnored(sigset_t& set, int signal);

}  // namespace hvd::os

#endif  // BASE_OS_SIGNALS_H_
