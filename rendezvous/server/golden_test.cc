// Journals that earlier programs wrote are read for as long as a job's version is the same; but not
// the snapshots of formats before 4, which were not Protobuf. How the files in testdata came about:
// two hosts, a:2 and b:1, in an elastic job of 1 to 3 workers; worker 2 was killed, b was drained
// and overran it when its worker failed; the daemon was started again. The one with a snapshot has
// it after the second world, that of the end after the last event. Never make them anew.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/fd.h"
#include "base/os/private_folder.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "gtest/gtest.h"
#include "proto/journal.pb.h"
#include "proto/snapshot.pb.h"
#include "rendezvous/journal/file_journal.h"
#include "rendezvous/journal/memory_journal_test_util.h"
#include "rendezvous/journal/record_file.h"
#include "rendezvous/server/job_recovery.h"
#include "rendezvous/snapshot/mutations_test_util.h"

namespace hvd::rendezvous::server {
namespace {

const absl::Time kStart = absl::FromUnixNanos(1600000000123456789);

policy::JobSpec Spec() {
  policy::JobSpec spec;
  spec.min_workers = 1;
  spec.max_workers = 3;
  spec.start_workers = 3;
  spec.elastic.emplace();
  return spec;
}

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A daemon resumes only jobs of the same version.
std::string OfThisVersion(const std::string& journal) {
  const auto payload = journal::FirstRecord(journal);
  pb::journal::Header header;
  EXPECT_TRUE(payload.ok() && payload->has_value());
  EXPECT_TRUE(header.ParseFromArray((*payload)->data(), static_cast<int>((*payload)->size())));
  header.set_version(kVersion);
  return journal::EncodeRecord(header.SerializeAsString()) +
         journal.substr(journal::kRecordHeaderBytes + (*payload)->size());
}

std::string Describe(const Recovered& job) {
  const membership::Membership::View view = job.machine->Describe();
  std::string text = absl::StrCat("epoch ", view.epoch.value(), ", ", StateName(view.state),
                                  ", failures ", view.failures, "\n");
  for (const auto& host : view.hosts) {
    absl::StrAppend(&text, host.host.host, ":", host.host.slots,
                    host.attached ? " attached\n" : "\n");
    for (const auto& worker : host.workers) {
      absl::StrAppend(&text, "  worker ", worker.id.value(), " rank ", worker.rank, " pid ",
                      worker.pid, " ", StateName(worker.state), "\n");
    }
  }
  for (const membership::WorldMember& member : job.machine->world()->members) {
    absl::StrAppend(&text, "member ", member.worker.id.value(), " ", member.host, " ",
                    member.address, ":", member.port, " commit ", member.commit, "\n");
  }
  absl::StrAppend(&text, "worlds ", job.history.count(membership::Notice::Kind::kWorldFormed),
                  ", failed ", job.history.count(membership::Notice::Kind::kWorkerFailed),
                  ", started ", job.history.count(membership::Notice::Kind::kWorkerStarted), "\n");
  return text;
}

class GoldenTest : public testing::Test {
 protected:
  ~GoldenTest() override { std::filesystem::remove_all(folder_->path()); }

  absl::StatusOr<std::unique_ptr<journal::FileJournal>> Open() {
    return journal::FileJournal::Open(*folder_, "golden", Spec(), kStart);
  }

  // Makes the file the folder's journal.
  absl::Status Write(const std::string& name) {
    ASSIGN_OR_RETURN(const Fd file, folder_->NewFile("journal"));
    return WriteAll(file.get(), OfThisVersion(Read("rendezvous/server/testdata/" + name)));
  }

  const std::unique_ptr<os::PrivateFolder> folder_ =
      *os::PrivateFolder::Open(absl::StrCat(testing::TempDir(), "/golden_", getpid()));
};

class GoldenJournalTest : public GoldenTest, public testing::WithParamInterface<const char*> {};

TEST_P(GoldenJournalTest, IsRead_AndGoesOnInTheNewFormat) {
  ASSERT_TRUE(Write(GetParam()).ok());
  for (int opening = 0; opening < 2; ++opening) {
    const auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ((*journal)->bytes_cut(), 0);
    EXPECT_EQ((*journal)->started(), kStart);
    const auto job = Recover(Spec(), **journal);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(Describe(*job),
              "epoch 3, running, failures 1\n"
              "a:2 attached\n"
              "  worker 1 rank 0 pid 1001 running\n"
              "  worker 4 rank -1 pid 1004 starting\n"
              "member 1 a 10.0.0.1:4001 commit 9\n"
              "worlds 3, failed 1, started 4\n");
    // And what this program makes of it, it understands as well.
    ASSERT_TRUE((*journal)->Compact({SaveJob(*job->machine, job->history), job->newest}).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenJournalTest,
                         testing::Values("journal_format_2", "journal_format_4",
                                         "journal_format_4_snapshot", "journal_format_4_end"));

class GoldenSnapshotTest : public GoldenTest {
 protected:
  std::string SavedAfter(const std::string& name) {
    EXPECT_TRUE(Write(name).ok());
    const auto journal = Open();
    if (!journal.ok()) return journal.status().ToString();
    const auto job = Recover(Spec(), **journal);
    return job.ok() ? Comparable(SaveJob(*job->machine, job->history)) : job.status().ToString();
  }

 private:
  // The files are older than the times of commits, which follow from the events alone, and than the
  // rule that only training that has begun can be rolled back: their events do not say when it did.
  static std::string Comparable(const std::string& saved) {
    pb::journal::SavedJob job;
    EXPECT_TRUE(job.ParseFromString(saved));
    job.mutable_membership()->mutable_epochs()->clear_times();
    job.mutable_history()->mutable_tally()->clear_rollbacks();
    job.mutable_history()->mutable_tally()->clear_rolled_back();
    return job.SerializeAsString();
  }
};

// A field that is read from another place than it was written to shows here.
TEST_F(GoldenSnapshotTest, Snapshot_StandsForTheEventsBeforeIt) {
  const std::string saved = SavedAfter("journal_format_4");
  EXPECT_EQ(SavedAfter("journal_format_4_snapshot"), saved);
  EXPECT_EQ(SavedAfter("journal_format_4_end"), saved);
}

TEST_F(GoldenSnapshotTest, SnapshotOfFormat2_IsRefused_AndBothFormatsAreNamed) {
  ASSERT_TRUE(Write("journal_format_2_snapshot").ok());
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(status.message(), "(format 2)")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "(format 4)")) << status;
}

// Resumes a job with this snapshot and lets time pass. A snapshot that a faulty daemon saved has a
// valid checksum, too, so it must be handled.
absl::Status GoOn(const pb::journal::SavedJob& saved) {
  journal::MemoryJournal journal(kStart);
  RETURN_IF_ERROR(journal.Compact({saved.SerializeAsString(), kStart}));
  ASSIGN_OR_RETURN(const Recovered job, Recover(Spec(), journal));
  absl::Time now = kStart + absl::Hours(1);
  job.machine->Apply(membership::Restarted(), now);
  for (int turn = 0; turn < 10; ++turn) {
    job.machine->Apply(membership::Tick(), now);
    Describe(job);
    now = std::max(now, std::min(job.machine->NextDeadline(), now + absl::Hours(1)));
  }
  return absl::OkStatus();
}

TEST_F(GoldenSnapshotTest, DamagedAnywhereInside_IsRefusedOrSurvived) {
  pb::journal::SavedJob saved;
  ASSERT_TRUE(saved.ParseFromString(SavedAfter("journal_format_4_snapshot")));
  int refused = 0, survived = 0;
  snapshot::Mutations mutations([&](const std::string& what) {
    RecordProperty("newest", what);
    const absl::Status status = GoOn(saved);
    ++(status.ok() ? survived : refused);
    if (status.ok()) return;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << what;
    EXPECT_TRUE(absl::StrContains(status.message(), "the journal's snapshot is damaged")) << what;
  });
  mutations.Of(&saved);
  EXPECT_GT(refused, 50);
  EXPECT_GT(survived, 500);
}

}  // namespace
}  // namespace hvd::rendezvous::server
