// A fake of etcd in memory, with faults, for tests.
#ifndef RENDEZVOUS_ETCD_FAKE_ETCD_TEST_UTIL_H_
#define RENDEZVOUS_ETCD_FAKE_ETCD_TEST_UTIL_H_

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"

namespace hvd::rendezvous::etcd {

// A clock that advances to the deadline of each wait at once.
class JumpingClock final : public Clock {
 public:
  absl::Time Now() override {
    absl::MutexLock lock(&mu_);
    return now_;
  }
  bool AwaitWithDeadline(absl::Mutex&, const absl::Condition& condition,
                         absl::Time deadline) override {
    absl::MutexLock lock(&mu_);
    if (condition.Eval()) return true;
    now_ = std::max(now_, deadline);
    return false;
  }

 private:
  absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_) = absl::FromUnixSeconds(1000);
};

// The state that all clients share.
class FakeEtcd {
 public:
  enum class Fault {
    kNone,
    kRequestLost,  // nothing was done
    kAnswerLost,   // it was done
    kRequestLate,  // it is done when ArriveLate is called
    kNoSpace,
    kRefused,
  };

  // From now on, decides the fate of each transaction, grant and range.
  void Break(std::function<Fault()> next) {
    absl::MutexLock lock(&mu_);
    next_fault_ = std::move(next);
  }

  // Delivers the delayed requests now, in this order.
  void ArriveLate() {
    absl::MutexLock lock(&mu_);
    for (const etcdserverpb::TxnRequest& request : std::exchange(late_, {})) (void)Apply(request);
  }

  void Expire(int64_t lease) {
    absl::MutexLock lock(&mu_);
    leases_.erase(lease);
    for (auto key = keys_.begin(); key != keys_.end();) {
      key = key->second.lease() == lease ? keys_.erase(key) : std::next(key);
    }
  }

  std::map<std::string, std::string> All() {
    absl::MutexLock lock(&mu_);
    std::map<std::string, std::string> all;
    for (const auto& [key, value] : keys_) all[key] = value.value();
    return all;
  }

  void Set(const std::string& key, const std::string& value) {
    etcdserverpb::TxnRequest request;
    auto& put = *request.add_success()->mutable_request_put();
    put.set_key(key);
    put.set_value(value);
    absl::MutexLock lock(&mu_);
    (void)Apply(request);
  }

  absl::StatusOr<etcdserverpb::TxnResponse> Txn(const etcdserverpb::TxnRequest& request) {
    absl::MutexLock lock(&mu_);
    switch (next_fault_ ? next_fault_() : Fault::kNone) {
      case Fault::kNone:
        return Apply(request);
      case Fault::kRequestLost:
        break;
      case Fault::kAnswerLost:
        (void)Apply(request);
        break;
      case Fault::kRequestLate:
        late_.push_back(request);
        break;
      case Fault::kNoSpace:
        return absl::ResourceExhaustedError("etcdserver: mvcc: database space exceeded");
      case Fault::kRefused:
        return absl::InvalidArgumentError("etcdserver: user name is empty");
    }
    return absl::UnavailableError("etcdserver: request timed out");
  }

  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest& request) {
    absl::MutexLock lock(&mu_);
    const Fault fault = next_fault_ ? next_fault_() : Fault::kNone;
    if (fault == Fault::kRefused) return absl::PermissionDeniedError("permission denied");
    if (fault != Fault::kNone && fault != Fault::kNoSpace)
      return absl::UnavailableError("no leader");
    return Read(request);
  }

  int64_t Grant() {
    absl::MutexLock lock(&mu_);
    leases_[++last_lease_] = true;
    return last_lease_;
  }

  bool Has(int64_t lease) {
    absl::MutexLock lock(&mu_);
    return leases_.count(lease) > 0;
  }

 private:
  etcdserverpb::RangeResponse Read(const etcdserverpb::RangeRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    etcdserverpb::RangeResponse response;
    const std::string end =
        request.range_end().empty() ? request.key() + '\0' : request.range_end();
    for (auto key = keys_.lower_bound(request.key()); key != keys_.end() && key->first < end;
         ++key) {
      if (request.limit() > 0 && response.kvs_size() == request.limit()) {
        response.set_more(true);
        break;
      }
      *response.add_kvs() = key->second;
    }
    return response;
  }

  bool Holds(const etcdserverpb::Compare& compare) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto found = keys_.find(compare.key());
    if (compare.target() == etcdserverpb::Compare::CREATE) {
      return compare.create_revision() ==
             (found == keys_.end() ? 0 : found->second.create_revision());
    }
    return found != keys_.end() && found->second.value() == compare.value();
  }

  etcdserverpb::TxnResponse Apply(const etcdserverpb::TxnRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    etcdserverpb::TxnResponse response;
    response.set_succeeded(true);
    for (const auto& compare : request.compare()) {
      if (!Holds(compare)) response.set_succeeded(false);
    }
    if (response.succeeded()) ++revision_;
    for (const auto& operation : response.succeeded() ? request.success() : request.failure()) {
      Do(operation, *response.add_responses());
    }
    response.mutable_header()->set_revision(revision_);
    return response;
  }

  void Do(const etcdserverpb::RequestOp& operation, etcdserverpb::ResponseOp& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (operation.has_request_range()) {
      *answer.mutable_response_range() = Read(operation.request_range());
    } else if (operation.has_request_delete_range()) {
      const auto& range = operation.request_delete_range();
      keys_.erase(keys_.lower_bound(range.key()), keys_.lower_bound(range.range_end()));
    } else {
      const etcdserverpb::PutRequest& put = operation.request_put();
      etcdserverpb::KeyValue& value = keys_[put.key()];
      if (value.create_revision() == 0) value.set_create_revision(revision_);
      value.set_key(put.key());
      value.set_value(put.value());
      value.set_lease(put.lease());
    }
  }

  absl::Mutex mu_;
  std::function<Fault()> next_fault_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, etcdserverpb::KeyValue> keys_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, bool> leases_ ABSL_GUARDED_BY(mu_);
  std::vector<etcdserverpb::TxnRequest> late_ ABSL_GUARDED_BY(mu_);
  int64_t revision_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t last_lease_ ABSL_GUARDED_BY(mu_) = 0;
};

// A client of the fake.
class FakeEtcdClient : public KeyValueStore {
 public:
  explicit FakeEtcdClient(FakeEtcd& etcd) : etcd_(etcd) {}

  const std::string& name() const override { return name_; }
  absl::StatusOr<etcdserverpb::RangeResponse> Range(const etcdserverpb::RangeRequest& request,
                                                    absl::Duration) override {
    return etcd_.Range(request);
  }
  absl::StatusOr<etcdserverpb::TxnResponse> Txn(const etcdserverpb::TxnRequest& request) override {
    return etcd_.Txn(request);
  }
  absl::StatusOr<int64_t> GrantLease(absl::Duration) override { return etcd_.Grant(); }
  absl::StatusOr<bool> KeepAlive(int64_t lease, absl::Duration) override {
    return etcd_.Has(lease);
  }
  absl::Status RevokeLease(int64_t lease) override {
    etcd_.Expire(lease);
    return absl::OkStatus();
  }

 private:
  FakeEtcd& etcd_;
  const std::string name_ = "fake:2379";
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_FAKE_ETCD_TEST_UTIL_H_
