// horovod-agent: started by horovodrun, once per host.
#include "base/mutex_checks.h"
#include "agent/agent_program.h"
#include "rendezvous/client/agent_link.h"

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  return hvd::RunAgentProgram(argc, argv, &hvd::AgentLink::Open);
}
