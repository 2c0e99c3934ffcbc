// horovod-agent: started by horovodrun, once per host.
#include "launcher/agent/agent_program.h"
#include "rendezvous/client/agent_link.h"

int main(int argc, char** argv) { return hvd::RunAgentProgram(argc, argv, &hvd::AgentLink::Open); }
