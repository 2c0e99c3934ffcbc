// Fuzz target: what a daemon finds in etcd of the job that an earlier one has served.
#include "absl/strings/str_cat.h"
#include "base/version.h"
#include "proto/journal.pb.h"
#include "rendezvous/etcd/etcd_job_store.h"
#include "rendezvous/etcd/etcd_journal.h"
#include "rendezvous/etcd/fake_etcd_test_util.h"
#include "rendezvous/journal/spec_codec.h"
#include "tests/support/fuzzing.h"

namespace hvd::rendezvous::etcd {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Keys of the job, with what the daemon compares with its own options put right.
class FoundJob {
 public:
  explicit FoundJob(InputParts& parts) {
    pb::journal::EtcdHead head;
    const absl::string_view bytes = parts.Text();
    if (head.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      head.mutable_header()->set_version(kVersion);
      head.mutable_header()->set_job_id("job");
      *head.mutable_header()->mutable_spec() = journal::ToSpecMessage(policy::JobSpec());
      etcd_.Set(keys_.Head(), head.SerializeAsString());
    } else {
      etcd_.Set(keys_.Head(), std::string(bytes));
    }
    while (!parts.empty()) {
      const uint8_t number = parts.Byte();
      const std::string value(parts.Text());
      etcd_.Set(number < 128 ? keys_.Events(number) : keys_.Chunk(number % 4, number / 4 % 4),
                value);
    }
  }

  absl::Status Read() {
    JumpingClock clock;
    FakeEtcdClient client(etcd_);
    Leadership leadership(1, 1, clock);
    // Whether it may write is another matter: the transaction fails, and the leadership is lost.
    FencedWriter writer(client, keys_, leadership, "", [](const std::string&) {});
    const auto journal = EtcdJournal::Open(client, leadership, keys_, writer, "job",
                                           policy::JobSpec(), kStart, /*must_exist=*/true);
    if (!journal.ok()) return journal.status();
    (*journal)->snapshot();
    return (*journal)->Replay([](const membership::Event&, absl::Time) {});
  }

 private:
  const JobKeys keys_{"train"};
  FakeEtcd etcd_;
};

}  // namespace
}  // namespace hvd::rendezvous::etcd

// The head after its length; then values, each after its number and its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::InputParts parts(data, size);
  const absl::Status read = hvd::rendezvous::etcd::FoundJob(parts).Read();
  if (!read.ok()) hvd::RequireOneLine(read);
  return 0;
}
