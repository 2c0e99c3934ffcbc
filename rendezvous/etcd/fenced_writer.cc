#include "rendezvous/etcd/fenced_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/failpoint/failpoint.h"

namespace hvd::rendezvous::etcd {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(200);  // between two attempts

// Errors that a repetition can't cure, such as a request that is too large. ResourceExhausted is
// not one: an operator can free space and disarm etcd's alarm.
bool IsForGood(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

etcdserverpb::RequestOp Get(const std::string& key) {
  etcdserverpb::RequestOp operation;
  operation.mutable_request_range()->set_key(key);
  return operation;
}

const etcdserverpb::KeyValue* FirstOf(const etcdserverpb::TxnResponse& response, int operation) {
  // After success the responses are those of the changes, not of the two reads.
  if (response.succeeded() || response.responses_size() <= operation) return nullptr;
  const auto& range = response.responses(operation).response_range();
  return range.kvs_size() == 0 ? nullptr : &range.kvs(0);
}

}  // namespace

etcdserverpb::RequestOp Put(const std::string& key, const std::string& value) {
  etcdserverpb::RequestOp operation;
  operation.mutable_request_put()->set_key(key);
  operation.mutable_request_put()->set_value(value);
  return operation;
}

etcdserverpb::RequestOp Delete(const KeyRange& range) {
  etcdserverpb::RequestOp operation;
  operation.mutable_request_delete_range()->set_key(range.begin);
  operation.mutable_request_delete_range()->set_range_end(range.end);
  return operation;
}

FencedWriter::FencedWriter(KeyValueStore& store, const JobKeys& keys, Leadership& leadership,
                           std::string tail, Say say)
    : store_(store),
      keys_(keys),
      leadership_(leadership),
      say_(std::move(say)),
      tail_(std::move(tail)),
      trouble_(store.name(),
               "training goes on, but nothing is decided until it works, or another daemon leads") {
}

// Retries the same transaction until etcd answers. That is safe because it compares the tail with
// the name of the previous write and sets it to its own name: it is applied at most once, and a
// delayed attempt fails once a later write has been applied. The name contains the leadership's
// revision, so it is unique.
absl::Status FencedWriter::Write(const std::vector<etcdserverpb::RequestOp>& changes) {
  absl::MutexLock lock(&mu_);
  // The lock is held while etcd is away: a later write must not overtake this one, since it names
  // this one as its predecessor.
  const std::string name = absl::StrCat(leadership_.revision(), ".", writes_ + 1);
  const etcdserverpb::TxnRequest transaction = Transaction(changes, name);
  Clock& clock = leadership_.clock();
  while (true) {
    if (const absl::Status state = leadership_.state(); !state.ok()) return state;
    absl::StatusOr<etcdserverpb::TxnResponse> response = store_.Txn(transaction);
    if (absl::Status lost = FAILPOINT_STATUS("daemon.etcd.written"); !lost.ok()) response = lost;
    if (response.ok()) {
      if (const auto line = trouble_.Succeeded(clock.Now())) say_(*line);
      return Judge(*response, name);
    }
    if (IsForGood(response.status())) {
      return absl::InternalError(absl::StrCat("etcd at ", store_.name(),
                                              " refuses to record: ", response.status().message()));
    }
    if (const auto line = trouble_.Failed(response.status(), clock.Now())) say_(*line);
    leadership_.AwaitLoss(clock.Now() + kPause);
  }
}

etcdserverpb::TxnRequest FencedWriter::Transaction(
    const std::vector<etcdserverpb::RequestOp>& changes, const std::string& name) const {
  etcdserverpb::TxnRequest transaction;
  etcdserverpb::Compare& leads = *transaction.add_compare();
  leads.set_target(etcdserverpb::Compare::CREATE);
  leads.set_key(keys_.Leader());
  leads.set_create_revision(leadership_.revision());
  etcdserverpb::Compare& follows = *transaction.add_compare();
  follows.set_key(keys_.Tail());
  if (tail_.empty()) {
    follows.set_target(etcdserverpb::Compare::CREATE);
    follows.set_create_revision(0);
  } else {
    follows.set_target(etcdserverpb::Compare::VALUE);
    follows.set_value(tail_);
  }
  *transaction.add_success() = Put(keys_.Tail(), name);
  for (const etcdserverpb::RequestOp& change : changes) *transaction.add_success() = change;
  *transaction.add_failure() = Get(keys_.Leader());
  *transaction.add_failure() = Get(keys_.Tail());
  return transaction;
}

// Evaluates the answer. A failed comparison means: this write was applied before (the tail has its
// name), or another daemon leads, or an unknown writer has changed the keys.
absl::Status FencedWriter::Judge(const etcdserverpb::TxnResponse& response,
                                 const std::string& name) {
  const etcdserverpb::KeyValue* const leader = FirstOf(response, 0);
  const etcdserverpb::KeyValue* const tail = FirstOf(response, 1);
  const bool leads = response.succeeded() ||
                     (leader != nullptr && leader->create_revision() == leadership_.revision());
  // The transaction was applied now, or by an earlier attempt whose answer was lost: then the tail
  // has this write's name.
  const bool is_made = response.succeeded() || (tail != nullptr && tail->value() == name);
  // A write that was made by a leader that has lost its key since counts as lost: its effects must
  // not be carried out here. The new leader finds it in the journal and continues from there.
  if (leads && is_made) {
    tail_ = name;
    ++writes_;
    return absl::OkStatus();
  }
  leadership_.Lose(absl::AbortedError(
      leads               ? "something else has written to this job's keys in etcd"
      : leader != nullptr ? absl::StrCat("the job is led by ", LeaderText(leader->value()), " now")
                          : std::string("this daemon's lease in etcd has ended")));
  return leadership_.state();
}

}  // namespace hvd::rendezvous::etcd
