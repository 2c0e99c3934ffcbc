#include "base/os/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace hvd::os {

std::string HostIdentity() {
  // The boot id stands for machine and boot. Abstract unix sockets belong to a network namespace,
  // which its inode identifies. The user decides on the permissions.
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network = {};
  if (boot.empty() || stat("/proc/self/ns/net", &network) != 0) return "";
  return absl::StrCat(boot, "/", network.st_dev, ":", network.st_ino, "/", geteuid());
}

}  // namespace hvd::os
