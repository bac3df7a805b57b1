#include "pipeline/deployment/ranks.h"

#include "ops/attention_kernel.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/deployment/rank_speeds.h"
#include "pipeline/deployment/same_run.h"
#include "pipeline/devices/rank_threads.h"

namespace braid {
namespace {

// A refusal is told as any failure of a rank.
void settle_shares_of(World& world, Deployment& deployment) {
  const int threads = threads_per_rank(deployment.options, world.ranks_on_these_cores());
  world.run([&](const Group& group) {
    group.await();
    const auto& host = deployment.until_met->host;
    settle_shares_by_speed(deployment, speeds_of_processes(group, deployment, threads, host));
  });
}

}  // namespace

std::unique_ptr<World> make_world(Deployment& deployment,
                                  const std::function<void(const std::string&)>& warn) {
  const auto& layout = deployment.options.layout;
  auto requested = world_of(layout);
  requested.warn = warn;
  requested.collectives = layout.collectives;
  const auto launch = layout.ranks == Ranks::kProcesses ? read_launch() : std::nullopt;
  if (!launch || launch->size == requested.size) requested.devices = deployment.devices;
  requested.deadline = deadline_of(layout, requested.devices);
  // LibTorch fills its list of attention kernels when it first chooses, without a lock: ranks that
  // did so at once could take different ones.
  for (std::size_t rank = 0; rank < requested.devices.size(); ++rank)
    if (!requested.devices[rank].is_cpu() && (!launch || launch->rank == int(rank)))
      (void)ops::attention_kernel_on(requested.devices[rank]);
  auto world = make_world(requested, launch);
  if (launch)
    world->run([&](const Group& group) {
      check_same_command(group, deployment);
      check_same_model(group, deployment);
    });
  if (deployment.until_met) settle_shares_of(*world, deployment);
  return world;
}

}  // namespace braid
