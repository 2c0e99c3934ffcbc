#include "collectives/hierarchical/on_hosts_testing.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace hvd::collectives::hierarchical {
namespace {

class SharedLocal : public Backend {
 public:
  explicit SharedLocal(std::shared_ptr<Backend> real) : real_(std::move(real)) {}
  absl::string_view name() const override { return real_->name(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return real_->Connect(group, keys, bounds);
  }

 private:
  const std::shared_ptr<Backend> real_;
};

class SharedMesh : public MeshBackend {
 public:
  explicit SharedMesh(std::shared_ptr<MeshBackend> real) : real_(std::move(real)) {}
  absl::string_view name() const override { return real_->name(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return real_->Connect(group, keys, bounds);
  }
  absl::StatusOr<std::unique_ptr<MeshCommunicator>> ConnectMesh(const GroupInfo& group,
                                                                KeyExchange& keys,
                                                                const WaitBounds& bounds) override {
    return real_->ConnectMesh(group, keys, bounds);
  }

 private:
  const std::shared_ptr<MeshBackend> real_;
};

class BackendOnHosts : public Backend {
 public:
  explicit BackendOnHosts(FakeHosts hosts)
      : hosts_(std::move(hosts)), across_(hosts_.make_across()) {}

  absl::string_view name() const override { return "hierarchical"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Connect(const GroupInfo& group, KeyExchange& keys,
                                                        const WaitBounds& bounds) override {
    return Of(group.rank).Connect(group, keys, bounds);
  }

 private:
  Backend& Of(int rank) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Backend>& backend = backends_[rank];
    if (backend != nullptr) return *backend;
    const std::string host = hosts_.host_of(rank);
    std::shared_ptr<Backend>& local = locals_[host];
    if (local == nullptr) local = hosts_.make_local(host);
    backend =
        MakeHierarchicalBackend(host, hosts_.options_of(rank), std::make_unique<SharedLocal>(local),
                                std::make_unique<SharedMesh>(across_));
    return *backend;
  }

  const FakeHosts hosts_;
  const std::shared_ptr<MeshBackend> across_;
  absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Backend>> locals_ ABSL_GUARDED_BY(mutex_);
  std::map<int, std::unique_ptr<Backend>> backends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Backend> MakeBackendOnHosts(FakeHosts hosts) {
  return std::make_unique<BackendOnHosts>(std::move(hosts));
}

}  // namespace hvd::collectives::hierarchical
