#include "rendezvous/reporting/event_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

constexpr int64_t kMicros = 1600000000123456;  // 2020-09-13 12:26:40.123456

TEST(EventLogTest, Line_WorldFormed_HasEverythingThatItSays) {
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWorldFormed;
  notice.epoch = Epoch(3);
  notice.size = 4;
  notice.commit = 17;
  notice.lost_steps = 5;
  notice.lost_time = absl::Milliseconds(1500);
  notice.text = "4 workers";
  EXPECT_EQ(
      EventLogLine(notice, absl::FromUnixMicros(kMicros)),
      "{\"time\":\"2020-09-13T12:26:40.123456Z\",\"kind\":\"world_formed\",\"world\":3,"
      "\"size\":4,\"commit\":17,\"lost_steps\":5,\"lost_seconds\":1.5,\"text\":\"4 workers\"}\n");
}

TEST(EventLogTest, Line_WorkerFailed_NamesHostWorkerAndRank) {
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWorkerFailed;
  notice.host = "h1";
  notice.worker = WorkerId(7);
  notice.rank = 0;
  notice.text = "exit code 3";
  EXPECT_EQ(EventLogLine(notice, absl::FromUnixMicros(kMicros)),
            "{\"time\":\"2020-09-13T12:26:40.123456Z\",\"kind\":\"worker_failed\",\"world\":0,"
            "\"host\":\"h1\",\"worker\":7,\"rank\":0,\"text\":\"exit code 3\"}\n");
}

TEST(EventLogTest, Line_Verdict) {
  membership::Verdict verdict;
  verdict.exit_code = 3;
  verdict.rank = 1;
  verdict.host = "h2";
  verdict.summary = "rank 1 failed";
  EXPECT_EQ(EventLogLine(verdict, absl::FromUnixMicros(kMicros)),
            "{\"time\":\"2020-09-13T12:26:40.123456Z\",\"kind\":\"job_finished\",\"success\":false,"
            "\"exit_code\":3,\"host\":\"h2\",\"rank\":1,\"text\":\"rank 1 failed\"}\n");
}

std::string TextOf(const std::string& text) {
  membership::Notice notice;
  notice.kind = membership::Notice::Kind::kWaiting;
  notice.text = text;
  const std::string line = EventLogLine(notice, absl::UnixEpoch());
  const size_t start = line.find("\"text\":") + 7;
  return line.substr(start, line.size() - start - 2);
}

TEST(EventLogTest, Line_AnyBytes_AreAJsonString) {
  EXPECT_EQ(TextOf("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\u000a\\u0001\"");
  EXPECT_EQ(TextOf("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
  EXPECT_EQ(TextOf("\xFF\xC3"), "\"\\ufffd\\ufffd\"");             // no start; cut short
  EXPECT_EQ(TextOf("\xC0\xAF"), "\"\\ufffd\\ufffd\"");             // overlong
  EXPECT_EQ(TextOf("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
}

TEST(EventLogTest, Write_Appends) {
  const std::string path = testing::TempDir() + "/event_log_" + std::to_string(getpid());
  for (const char* text : {"one", "two"}) {
    auto log = EventLog::Open(path);
    ASSERT_TRUE(log.ok()) << log.status();
    membership::Notice notice;
    notice.kind = membership::Notice::Kind::kWaiting;
    notice.text = text;
    (*log)->Write(notice);
  }
  std::ostringstream contents;
  contents << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  const size_t first = contents.str().find("\"text\":\"one\"}\n");
  const size_t second = contents.str().find("\"text\":\"two\"}\n");
  EXPECT_LT(first, second);
  EXPECT_NE(second, std::string::npos);
}

TEST(EventLogTest, Write_DiskIsFull_IsReportedOnce) {
  auto log = EventLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  std::vector<std::string> told;
  (*log)->OnLost([&told](const std::string& what) { told.push_back(what); });
  (*log)->Write(membership::Notice());
  (*log)->Write(membership::Verdict());
  log->reset();  // all is written, or given up
  EXPECT_EQ(told, std::vector<std::string>{"can't write the event log /dev/full: No space left on "
                                           "device; lines are missing there"});
}

TEST(EventLogTest, Line_Dropped) {
  EXPECT_EQ(EventLogDroppedLine(2, absl::FromUnixMicros(kMicros)),
            "{\"time\":\"2020-09-13T12:26:40.123456Z\",\"kind\":\"lines_dropped\",\"count\":2,"
            "\"text\":\"2 lines are missing here: they could not be written in time\"}\n");
}

TEST(EventLogTest, Open_APipeThatNobodyReads_SaysSo_AndDoesNotWait) {
  const std::string path = testing::TempDir() + "/event_log_pipe_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const absl::Status status = EventLog::Open(path).status();
  unlink(path.c_str());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("it is a pipe that nobody reads"), absl::string_view::npos);
}

TEST(EventLogTest, Open_NoSuchDirectory_SaysWhy) {
  const auto log = EventLog::Open(testing::TempDir() + "/no/such/file");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(log.status().message().find("No such file"), absl::string_view::npos);
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
