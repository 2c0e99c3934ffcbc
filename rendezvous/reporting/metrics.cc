#include "rendezvous/reporting/metrics.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "rendezvous/reporting/event_log.h"

namespace hvd::rendezvous::reporting {
namespace {

using Kind = membership::Notice::Kind;

// The characters that the format escapes in the value of a label.
std::string Escape(absl::string_view value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// Writes one metric after the other, each with the samples of all jobs, as the format requires.
class Page {
 public:
  explicit Page(const std::vector<JobReport>& jobs) : jobs_(jobs) {}

  // `samples` adds the samples of one job.
  using AddSample = std::function<void(absl::string_view label, absl::string_view value, double)>;
  void Add(absl::string_view name, absl::string_view type, absl::string_view help,
           const std::function<void(const JobReport&, const AddSample&)>& samples) {
    absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
    for (const JobReport& job : jobs_) {
      samples(job, [&](absl::string_view label, absl::string_view value, double number) {
        absl::StrAppend(&text_, name, "{job=\"", Escape(job.job_id), "\"");
        if (!label.empty()) absl::StrAppend(&text_, ",", label, "=\"", Escape(value), "\"");
        // 15 digits: counters stay exact beyond the 6 digits that StrAppend would give.
        absl::StrAppendFormat(&text_, "} %.15g\n", number);
      });
    }
  }

  void AddNumber(absl::string_view name, absl::string_view type, absl::string_view help,
                 const std::function<double(const JobReport&)>& number) {
    Add(name, type, help,
        [&](const JobReport& job, const AddSample& add) { add("", "", number(job)); });
  }

  // The same, without samples of static jobs: for numbers that mean nothing there, or would fire
  // alerts.
  void AddElastic(absl::string_view name, absl::string_view type, absl::string_view help,
                  const std::function<double(const JobReport&)>& number) {
    Add(name, type, help, [&](const JobReport& job, const AddSample& add) {
      if (job.view.elastic) add("", "", number(job));
    });
  }

  std::string Take() { return std::move(text_); }

 private:
  const std::vector<JobReport>& jobs_;
  std::string text_;
};

void AddWorkers(const JobReport& job, const Page::AddSample& add) {
  std::map<lifecycle::WorkerState, int> by_state;
  for (const membership::Membership::HostView& host : job.view.hosts) {
    for (const membership::Membership::WorkerView& worker : host.workers) ++by_state[worker.state];
  }
  for (const auto& [state, count] : by_state) add("state", StateName(state), count);
}

void AddHosts(const JobReport& job, const Page::AddSample& add) {
  int attached = 0;
  for (const membership::Membership::HostView& host : job.view.hosts)
    attached += host.attached ? 1 : 0;
  // Both, even if 0: an alert can only compare a sample that exists.
  add("attached", "true", attached);
  add("attached", "false", static_cast<int>(job.view.hosts.size()) - attached);
}

double Slots(const JobReport& job) {
  int slots = 0;
  for (const membership::Membership::HostView& host : job.view.hosts) {
    // Other hosts may be gone for good: their slots can't be counted on.
    if (host.attached) slots += host.host.slots;
  }
  return slots;
}

void AddSize(Page& page) {
  page.AddNumber("horovod_world", "gauge", "The newest world's number; 0: there was none.",
                 [](const JobReport& job) { return job.view.epoch.value(); });
  page.AddNumber("horovod_world_size", "gauge", "Ranks of the newest world.",
                 [](const JobReport& job) { return job.view.size; });
  page.Add("horovod_job_state", "gauge", "The state the job is in.",
           [](const JobReport& job, const Page::AddSample& add) {
             add("state", StateName(job.view.state), 1);
           });
  page.AddNumber("horovod_waiting", "gauge", "1 while no world is up: workers are awaited.",
                 [](const JobReport& job) { return IsWaiting(job.view.state) ? 1 : 0; });
  page.AddElastic("horovod_min_workers", "gauge", "The job goes on with no fewer.",
                  [](const JobReport& job) { return job.view.min_workers; });
  page.AddElastic("horovod_max_workers", "gauge", "The job never uses more.",
                  [](const JobReport& job) { return job.view.max_workers; });
  page.Add("horovod_workers", "gauge", "Worker processes, by state.", AddWorkers);
  page.Add("horovod_hosts", "gauge", "Hosts, by whether their agent is there.", AddHosts);
  page.AddNumber("horovod_slots", "gauge", "Slots of the attached hosts.", Slots);
}

void AddProgress(Page& page) {
  page.AddNumber("horovod_commit", "gauge", "The newest commit's number; 0: there is none.",
                 [](const JobReport& job) { return job.view.commit; });
  page.Add("horovod_seconds_since_commit", "gauge", "Since the newest commit.",
           [](const JobReport& job, const Page::AddSample& add) {
             // No sample: an infinite age would spoil averages and alerts.
             if (job.view.committed_at == absl::InfinitePast()) return;
             add("", "", absl::ToDoubleSeconds(job.now - job.view.committed_at));
           });
  page.AddNumber("horovod_checkpoint", "gauge",
                 "The number of the newest checkpoint's commit; 0: there is none.",
                 [](const JobReport& job) { return job.view.checkpoint; });
  page.Add("horovod_seconds_since_checkpoint", "gauge", "Since the newest checkpoint's commit.",
           [](const JobReport& job, const Page::AddSample& add) {
             if (job.view.checkpoint_at == absl::InfinitePast()) return;
             add("", "", absl::ToDoubleSeconds(job.now - job.view.checkpoint_at));
           });
  page.AddNumber("horovod_checkpoint_fails", "gauge",
                 "1 while the last checkpoint could not be written.",
                 [](const JobReport& job) { return job.view.checkpoint_failure.empty() ? 0 : 1; });
  page.AddNumber("horovod_lost_steps_total", "counter",
                 "Steps since the commits that the job went back to after failures.",
                 [](const JobReport& job) { return job.view.lost_steps; });
  page.AddNumber("horovod_lost_seconds_total", "counter", "The same in seconds of training.",
                 [](const JobReport& job) { return absl::ToDoubleSeconds(job.view.lost_time); });
}

void AddEvents(Page& page) {
  page.AddNumber("horovod_worlds_formed_total", "counter", "Worlds that have formed.",
                 [](const JobReport& job) { return job.history.count(Kind::kWorldFormed); });
  page.Add("horovod_seconds_since_world", "gauge", "Since the newest world formed.",
           [](const JobReport& job, const Page::AddSample& add) {
             if (!job.history.newest_world().has_value()) return;
             add("", "", absl::ToDoubleSeconds(job.now - *job.history.newest_world()));
           });
  page.AddElastic("horovod_seconds_without_world_total", "counter",
                  "Time without a world since the first one.", [](const JobReport& job) {
                    return absl::ToDoubleSeconds(job.history.tally().WithoutWorld(job.now));
                  });
  page.AddNumber("horovod_failures_total", "counter", "Failures that counted against the budget.",
                 [](const JobReport& job) { return job.view.failures; });
  page.AddElastic("horovod_failures_left", "gauge", "Failures that would be forgiven now.",
                  [](const JobReport& job) { return job.view.failures_left; });
  page.Add("horovod_events_total", "counter", "What happened, by kind, as in the event log.",
           [](const JobReport& job, const Page::AddSample& add) {
             // Also kinds that have not occurred: a counter that appears later than its first
             // increment hides that from rate().
             for (const Kind kind : AllNoticeKinds()) {
               add("kind", NoticeKindName(kind), static_cast<double>(job.history.count(kind)));
             }
           });
}

}  // namespace

std::string RenderMetrics(const std::vector<JobReport>& jobs) {
  Page page(jobs);
  AddSize(page);
  AddProgress(page);
  AddEvents(page);
  return page.Take();
}

}  // namespace hvd::rendezvous::reporting
