// scheduler SLOTS "COMMAND" "URGENT COMMAND": runs two trainings on this machine's slots, with
// preemption. The first is elastic and takes all slots. As soon as it trains, the urgent one
// arrives and takes all slots but one: the first gives each of them back at its next commit,
// without losing a step, and gets them again when the urgent one has ended. A worker that dies is
// replaced.
// Uses nothing but horovod/rendezvous.hpp.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <horovod/rendezvous.hpp>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

// A queue of tasks for the main thread, ordered by time. Callbacks, which must return at once, only
// add tasks.
class Queue {
 public:
  void Post(std::function<void()> task, double seconds = 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.emplace(Clock::now() + std::chrono::milliseconds(static_cast<int>(1000 * seconds)),
                   std::move(task));
    changed_.notify_one();
  }

  void RunNext() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (tasks_.empty() || tasks_.begin()->first > Clock::now()) {
      if (tasks_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, Clock::time_point(tasks_.begin()->first));
      }
    }
    const std::function<void()> task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, std::function<void()>> tasks_;
};

// Starts a process in a new process group, with this process's environment and `more`, which
// replaces variables of the same name.
pid_t Spawn(const std::string& command, const std::vector<std::string>& more) {
  std::vector<char*> variables;
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string name(*v, std::strcspn(*v, "=") + 1);
    const auto has_name = [&](const std::string& other) { return other.rfind(name, 0) == 0; };
    if (std::none_of(more.begin(), more.end(), has_name)) variables.push_back(*v);
  }
  for (const std::string& variable : more) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);
  const std::string line = "exec " + command;
  char* const arguments[] = {const_cast<char*>("sh"), const_cast<char*>("-c"),
                             const_cast<char*>(line.c_str()), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, "sh", nullptr, &attributes, arguments, variables.data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  errno = error;
  return -1;
}

// A job and its processes. Used by the main thread, except the callbacks.
class Training {
 public:
  using Event = std::function<void()>;

  Training(horovod::rendezvous::Server& server, Queue& queue, std::string command,
           horovod::rendezvous::JobOptions options)
      : queue_(queue), name_(options.id), command_(std::move(command)) {
    options.start_worker = [this](const horovod::rendezvous::Worker& worker) {
      queue_.Post([this, worker] { Start(worker); });
    };
    options.stop_worker = [this](uint64_t worker, double grace) {
      queue_.Post([this, worker] { Signal(worker, SIGTERM); });
      queue_.Post([this, worker] { Signal(worker, SIGKILL); }, grace);
    };
    options.host_free = [this](const std::string& slot) {
      queue_.Post([this, slot] {
        held_.erase(slot);
        on_free(slot);
      });
    };
    options.finished = [this](const horovod::rendezvous::Result& result) {
      queue_.Post([this, result] {
        Say("ended: " + result.summary);
        result_ = result;
        on_end();
      });
    };
    options.notice = [this](const std::string& json) {
      if (json.find("\"kind\":\"world_formed\"") == std::string::npos) return;
      queue_.Post([this] { on_world(); });
    };
    job_ = server.add_job(std::move(options));
  }

  // Sets the slots that the job may use from now on. Each slot is a separate host, so that slots
  // can be added and removed one at a time.
  void Offer(const std::set<std::string>& slots) {
    std::vector<horovod::rendezvous::Host> hosts;
    for (const std::string& slot : slots) hosts.push_back({slot, 1, "this-machine"});
    held_.insert(slots.begin(), slots.end());
    Say("may use " + std::to_string(slots.size()) + (slots.size() == 1 ? " slot" : " slots"));
    job_->offer_slots(hosts);
  }

  const std::set<std::string>& held() const { return held_; }
  bool over() const { return result_.has_value() && processes_.empty(); }
  int exit_code() const { return result_->exit_code; }

  Event on_world = [] {};  // a world has formed
  Event on_end = [] {};    // the job has a result
  std::function<void(const std::string&)> on_free = [](const std::string&) {};  // a slot is free

 private:
  void Say(const std::string& text) { std::cout << name_ + ": " + text << std::endl; }

  void Start(const horovod::rendezvous::Worker& worker) {
    const pid_t pid = Spawn(command_, worker.environment);
    const uint64_t id = worker.worker;
    if (pid < 0) {
      horovod::rendezvous::Exit exit;
      exit.worker = id;
      exit.start_error = std::strerror(errno);
      return job_->report_exit(exit);
    }
    Say("worker " + std::to_string(id) + " is process " + std::to_string(pid));
    processes_[id] = pid;
    job_->report_started(id, pid);
    std::thread([this, id, pid] {
      siginfo_t info;
      // WNOWAIT leaves the zombie, so its process id is not reused yet.
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
      queue_.Post([this, id] { End(id); });
    }).detach();
  }

  void Signal(uint64_t worker, int signal) {
    const auto found = processes_.find(worker);
    if (found != processes_.end()) kill(-found->second, signal);
  }

  void End(uint64_t worker) {
    Signal(worker, SIGKILL);  // the worker's descendants
    int status = 0;
    waitpid(processes_[worker], &status, 0);
    processes_.erase(worker);
    horovod::rendezvous::Exit exit;
    exit.worker = worker;
    if (WIFEXITED(status)) exit.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    job_->report_exit(exit);
  }

  Queue& queue_;
  const std::string name_;
  const std::string command_;
  std::set<std::string> held_;  // including slots that it is leaving
  std::map<uint64_t, pid_t> processes_;
  std::optional<horovod::rendezvous::Result> result_;
  // Last, so that it is destroyed first: no callback comes after that.
  std::optional<horovod::rendezvous::Job> job_;
};

int Run(int slots, const std::string& command, const std::string& urgent_command) {
  Queue queue;
  horovod::rendezvous::Server server({"127.0.0.1:0"});
  horovod::rendezvous::JobOptions options;
  options.id = "first";
  options.np = slots;
  options.min_np = 1;
  options.max_np = slots;
  Training first(server, queue, command, options);
  options.id = "urgent";
  options.np = options.min_np = options.max_np = slots - 1;
  Training urgent(server, queue, urgent_command, options);

  std::set<std::string> all;
  for (int i = 0; i < slots; ++i) all.insert("slot" + std::to_string(i));
  const std::string kept = "slot0";
  std::set<std::string> others = all;
  others.erase(kept);
  bool asked = false, given = false;
  const auto share = [&] {
    if (urgent.over()) return first.over() ? void() : first.Offer(all);
    const bool ready = asked && first.held().size() <= 1;  // the kept one
    if (ready && !std::exchange(given, true)) urgent.Offer(others);
  };
  first.on_world = [&] {
    if (!std::exchange(asked, true)) first.Offer({kept});
  };
  first.on_free = [&](const std::string&) {
    if (!urgent.over()) share();
  };
  first.on_end = [&] {
    asked = true;
    share();
  };
  first.Offer(all);
  while (!first.over() || !urgent.over()) {
    const bool ran = !urgent.over();
    queue.RunNext();
    if (ran && urgent.over()) share();
  }
  return first.exit_code() != 0 ? first.exit_code() : urgent.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  const int slots = argc == 4 ? std::atoi(argv[1]) : 0;
  if (slots < 2) {
    std::cerr << "usage: scheduler SLOTS \"COMMAND\" \"URGENT COMMAND\", with two slots or more\n";
    return 2;
  }
  try {
    return Run(slots, argv[2], argv[3]);
  } catch (const horovod::rendezvous::Error& error) {
    std::cerr << "scheduler: " << error.what() << "\n";
    return 2;
  }
}
