// A queue per operation name. The runtime allows one operation of a name at a time, but a graph may
// run an operation several times at once (the iterations of a tf.while_loop): the queue serialises
// them.
#ifndef FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_
#define FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace hvd::frameworks::tensorflow {

// Thread-safe. Calls functions without holding its lock.
class NameQueue {
 public:
  // Calls start() now or, if the name is in flight, from End() of the operation before. The caller
  // must call End() when the operation has ended.
  void Begin(const std::string& name, std::function<void()> start);
  // Ends the operation of this name that is in flight, and starts the next one.
  void End(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::deque<std::function<void()>>>
      waiting_;  // by names in flight
};

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_
