// A queue for each name of an operation, since a name can be in flight once. A graph may run one
// operation several times at once (the iterations of a tf.while_loop): the others wait their turn.
#ifndef FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_
#define FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

namespace hvd::frameworks::tensorflow {

// Thread-safe. Functions are called without its lock.
class NameQueue {
 public:
  // Calls start() now, or in End of the operation before it. End must follow.
  void Begin(const std::string& name, std::function<void()> start);
  // Ends the operation of this name that is in flight, and starts the next one.
  void End(const std::string& name);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::deque<std::function<void()>>> waiting_;  // by names in flight
};

}  // namespace hvd::frameworks::tensorflow

#endif  // FRAMEWORKS_TENSORFLOW_NAME_QUEUE_H_
