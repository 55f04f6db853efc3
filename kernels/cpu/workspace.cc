#include "kernels/cpu/workspace.h"

#include <array>

namespace lockstep::cpu {

Workspace& thread_workspace(WorkspaceUse use) {
  thread_local std::unique_ptr<std::array<Workspace, kWorkspaceUses>> workspaces;
  if (!workspaces) workspaces = std::make_unique<std::array<Workspace, kWorkspaceUses>>();
  return (*workspaces)[static_cast<size_t>(use)];
}

}  // namespace lockstep::cpu
