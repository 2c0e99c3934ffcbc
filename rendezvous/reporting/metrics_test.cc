#include "rendezvous/reporting/metrics.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

JobReport Report(const std::string& id) {
  JobReport report;
  report.job_id = id;
  report.now = absl::FromUnixSeconds(100);
  report.view.elastic = true;
  report.view.epoch = Epoch(3);
  report.view.state = lifecycle::JobState::kRunning;
  report.view.size = 2;
  report.view.min_workers = 1;
  report.view.max_workers = 4;
  report.view.failures = 5;
  report.view.failures_left = 6;
  report.view.hosts = {{{"a", 2},
                        true,
                        "",
                        absl::InfiniteFuture(),
                        {{WorkerId(1), 0, 77, lifecycle::WorkerState::kRunning},
                         {WorkerId(2), 1, 78, lifecycle::WorkerState::kRunning}}},
                       {{"b", 4},
                        false,
                        "",
                        absl::InfiniteFuture(),
                        {{WorkerId(3), -1, 79, lifecycle::WorkerState::kStarting}}}};
  return report;
}

void ExpectLine(const std::string& text, const std::string& line) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << line << "\nin\n" << text;
}

TEST(MetricsTest, Job_IsDescribed) {
  const std::string text = RenderMetrics({Report("j")});
  for (const char* line :
       {"# TYPE horovod_world gauge", "horovod_world{job=\"j\"} 3",
        "horovod_world_size{job=\"j\"} 2", "horovod_job_state{job=\"j\",state=\"running\"} 1",
        "horovod_waiting{job=\"j\"} 0", "horovod_min_workers{job=\"j\"} 1",
        "horovod_max_workers{job=\"j\"} 4", "horovod_workers{job=\"j\",state=\"running\"} 2",
        "horovod_workers{job=\"j\",state=\"starting\"} 1",
        "horovod_hosts{job=\"j\",attached=\"true\"} 1",
        "horovod_hosts{job=\"j\",attached=\"false\"} 1", "horovod_slots{job=\"j\"} 2",
        "horovod_failures_total{job=\"j\"} 5", "horovod_failures_left{job=\"j\"} 6",
        "horovod_worlds_formed_total{job=\"j\"} 0"}) {
    ExpectLine(text, line);
  }
  EXPECT_FALSE(absl::StrContains(text, "horovod_seconds_since_world{")) << "there was none";
}

TEST(MetricsTest, History_IsCounted) {
  JobReport report = Report("j");
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWorldFormed;
  report.history.Observe(notice, absl::FromUnixSeconds(90));
  notice.kind = membership::Notice::Kind::kWorkerFailed;
  report.history.Observe(notice, absl::FromUnixSeconds(95));
  const std::string text = RenderMetrics({report});
  ExpectLine(text, "horovod_worlds_formed_total{job=\"j\"} 1");
  ExpectLine(text, "horovod_seconds_since_world{job=\"j\"} 10");
  ExpectLine(text, "horovod_events_total{job=\"j\",kind=\"worker_failed\"} 1");
  ExpectLine(text, "horovod_events_total{job=\"j\",kind=\"host_lost\"} 0");
  ExpectLine(text, "horovod_events_total{job=\"j\",kind=\"daemon_restarted\"} 0");
  ExpectLine(text, "horovod_events_total{job=\"j\",kind=\"host_back\"} 0");
}

TEST(MetricsTest, StaticJob_HasNothingThatMeansNothingThere) {
  JobReport report = Report("j");
  report.view.elastic = false;
  const std::string text = RenderMetrics({report});
  for (const char* name : {"horovod_failures_left", "horovod_min_workers", "horovod_max_workers",
                           "horovod_seconds_without_world_total"}) {
    EXPECT_FALSE(absl::StrContains(text, absl::StrCat("\n", name, "{"))) << name;
  }
  ExpectLine(text, "horovod_failures_total{job=\"j\"} 5");
}

TEST(MetricsTest, TimeWithoutAWorld_GoesOnUntilTheNext) {
  JobReport report = Report("j");
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWorldFormed;
  report.history.Observe(notice, absl::FromUnixSeconds(80));
  notice.kind = membership::Notice::Kind::kEpochBroken;
  report.history.Observe(notice, absl::FromUnixSeconds(93));
  ExpectLine(RenderMetrics({report}), "horovod_seconds_without_world_total{job=\"j\"} 7");
  notice.kind = membership::Notice::Kind::kWorldFormed;
  report.history.Observe(notice, absl::FromUnixSeconds(95));
  ExpectLine(RenderMetrics({report}), "horovod_seconds_without_world_total{job=\"j\"} 2");
}

TEST(MetricsTest, WithoutAWorld_TheJobWaits) {
  JobReport report = Report("j");
  for (const lifecycle::JobState state :
       {lifecycle::JobState::kForming, lifecycle::JobState::kResetting}) {
    report.view.state = state;
    ExpectLine(RenderMetrics({report}), "horovod_waiting{job=\"j\"} 1");
  }
}

// Prometheus refuses a page that has a metric's samples in two places, or a sample twice.
TEST(MetricsTest, SeveralJobs_EachMetricInOnePlace_NoSampleTwice) {
  std::set<std::string> headers;
  std::set<std::string> samples;
  std::string current;
  const std::string text = RenderMetrics({Report("j"), Report("k")});
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "# HELP ")) {
      current = std::string(line.substr(7, line.find(' ', 7) - 7));
      EXPECT_TRUE(headers.insert(current).second) << line;
    } else if (!absl::StartsWith(line, "#")) {
      EXPECT_EQ(line.substr(0, line.find('{')), current) << line;
      EXPECT_TRUE(samples.insert(std::string(line.substr(0, line.rfind(' ')))).second) << line;
    }
  }
  ExpectLine(text, "horovod_world{job=\"k\"} 3");
}

TEST(MetricsTest, LabelsAreEscaped) {
  ExpectLine(RenderMetrics({Report("a\"b\\c\nd")}), "horovod_world{job=\"a\\\"b\\\\c\\nd\"} 3");
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
