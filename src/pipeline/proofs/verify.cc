#include "pipeline/proofs/verify.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "comm/thread.h"
#include "parallel/layout.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/devices/devices.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/proofs/attention_check.h"
#include "pipeline/proofs/probe.h"

namespace braid {
namespace {

constexpr std::uint64_t kPictureSeeds = 1'000'000'007;

// What one rank computed, by place, in order of computation.
struct Trace {
  std::vector<std::string> places;
  std::map<std::string, Tensor> tokens;
  std::map<std::string, double> attentions;  // their differences, in place of tokens
  std::vector<std::int64_t> image_runs;  // tokens of the noise and of each reference, on one rank

  void add(const std::string& where, const Tensor& x) {
    places.push_back(where);
    tokens[where] = x.to(at::kCPU, at::kFloat);
  }
  // Several attentions of a block are one place.
  void add_attention(const std::string& where, double difference) {
    const auto [there, is_new] = attentions.try_emplace(where, difference);
    if (is_new) places.push_back(where);
    there->second = std::max(there->second, difference);
  }
};

// One of the inputs that a layout divides, from 0 on; named where it is not the first.
struct Item {
  int picture, branch;
  const Part* denoiser;  // null: the first one

  std::string place_name(const std::string& place) const {
    return place + (denoiser ? " of " + denoiser->folder : "") +
           (branch == 0 ? "" : text_of(" of branch ", branch + 1)) +
           (picture == 0 ? "" : text_of(" of picture ", picture + 1));
  }
};

Item item_of(const Denoisers& denoisers, int picture, const StepInfo& step) {
  const auto number = denoisers.serving(step);
  return {.picture = picture,
          .branch = step.branch,
          .denoiser = number == 0 ? nullptr : &denoisers.list()[number].part};
}

// Shows the residuals that blocks receive from ControlNets to the watch of their input.
DenoiserPart with_watched_residuals(DenoiserPart part) {
  part.predict = [inner = std::move(part.predict)](const DenoiserInput& in, const Tensor& state) {
    const auto show = [&](const char* kind, const std::vector<Tensor>& residuals) {
      for (std::size_t i = 0; in.watch && i < residuals.size(); ++i)
        in.watch(text_of("control.", kind, ".", i), residuals[i]);
    };
    show("double", in.residuals.doubles);
    show("single", in.residuals.singles);
    return inner(in, state);
  };
  return part;
}

// "double_blocks.0 image" is a place of double_blocks.0.
std::string attention_of(const std::string& place) {
  return place.substr(0, place.find(' ')) + " attention";
}

Interposed with_watch(Interposed interposed, const Group& context, AttentionCheck* check) {
  if (check)
    interposed.attend = [=, faulty = std::move(interposed.attend)](const Attend& whole) {
      return check->around(context, faulty ? faulty(whole) : whole);
    };
  interposed.part = [faulty = std::move(interposed.part)](DenoiserPart part) {
    if (faulty) part = faulty(std::move(part));
    return with_watched_residuals(std::move(part));
  };
  return interposed;
}

// What all traces have in common.
struct Proof {
  const VerifyOptions& options;
  Probe probe;
  int num_pictures, num_branches;
  std::vector<StepInfo> steps;
  bool checks_attention;  // which ranks share
};

// Hears of what one rank computes.
struct Watched {
  Trace& trace;
  AttentionCheck& attention;

  void add(const Item& item, const std::string& where, const Tensor& x) const {
    if (const auto difference = attention.take())
      trace.add_attention(item.place_name(attention_of(where)), *difference);
    trace.add(item.place_name(where), x);
  }
};

// Branches of a step of one picture, as generate_pictures() has them.
std::vector<DenoiserInput> watched_branches(const Proof& proof, int picture, const StepInfo& step,
                                            const Denoisers& denoisers, at::Device device,
                                            const Watched& watched) {
  const auto seed = proof.options.seed + kPictureSeeds * std::uint64_t(picture);
  auto branches = branches_of(proof.probe, seed, device, step, proof.num_branches);
  for (auto& in : branches)
    in.watch = [watched, item = item_of(denoisers, picture, in.step)](
                   const std::string& where, const Tensor& x) { watched.add(item, where, x); };
  auto& trace = watched.trace;
  trace.image_runs = {branches.front().noise.x_BLC.size(1)};
  for (const auto& reference : branches.front().references)
    trace.image_runs.push_back(reference.x_BLC.size(1));
  modulate_controls(branches, denoisers.controls());
  return branches;
}

// The velocities of each step and branch, one after another.
std::vector<Tensor> predict_picture(const Proof& proof, int picture, const Denoisers& denoisers,
                                    at::Device device, const Watched& watched) {
  std::vector<std::vector<DenoiserInput>> steps;
  for (const auto& step : proof.steps)
    steps.push_back(watched_branches(proof, picture, step, denoisers, device, watched));
  const OncePerPicture once(denoisers, steps, proof.probe.prefix);
  std::vector<Tensor> velocities;
  for (const auto& step : steps)
    for (auto& velocity : once.predict(step)) velocities.push_back(std::move(velocity));
  return velocities;
}

// Traces as many branches of each picture as the layout to prove has ranks for branches.
Trace trace_of(const Proof& proof, const Mesh& mesh, const Deployment& deployment,
               Interposed interposed) {
  const auto device = deployment.devices[std::size_t(mesh.world.rank())];
  const c10::DeviceGuard on(device);
  AttentionCheck attention;
  const auto denoisers = denoisers_of(mesh, deployment,
                                      with_watch(std::move(interposed), mesh.context,
                                                 proof.checks_attention ? &attention : nullptr));
  mesh.world.await();  // ranks load for unequal times
  const auto& probe = proof.probe;
  if (probe.keeps_references())
    denoisers->keep_references(
        probe.family->references_alone(references_of(probe, proof.options.seed, device)));
  (void)attention.take();  // of the references
  Trace trace;
  const Watched watched{.trace = trace, .attention = attention};
  const auto mine = pictures_of_rank(mesh, proof.num_pictures);
  std::vector<Tensor> velocities(proof.steps.size() * std::size_t(proof.num_branches));
  for (auto picture = mine.begin; picture < mine.begin + mine.count; ++picture) {
    const auto made = predict_picture(proof, int(picture), *denoisers, device, watched);
    for (std::size_t i = 0; i < made.size(); ++i)
      velocities[i] = velocities[i].defined() ? at::cat({velocities[i], made[i]}) : made[i];
  }
  mesh.world.await();
  auto velocity = velocities.begin();
  for (auto step : proof.steps)
    for (step.branch = 0; step.branch < proof.num_branches; ++step.branch) {
      const auto all = gather_pictures(mesh, *velocity++);
      for (int picture = 0; picture < proof.num_pictures; ++picture)
        trace.add(item_of(*denoisers, picture, step).place_name("velocity"),
                  all.narrow(0, picture, 1));
    }
  return trace;
}

// Each run of tokens is split among ranks separately.
Tensor share_of_runs(const Tensor& whole, const std::vector<std::int64_t>& image_runs,
                     const Group& context) {
  const auto all = std::accumulate(image_runs.begin(), image_runs.end(), std::int64_t(0));
  if (whole.size(1) != all) return take_share(whole, 1, context);
  std::vector<Tensor> shares;
  for (const auto& run : whole.split_with_sizes(image_runs, 1))
    shares.push_back(take_share(run, 1, context));
  return at::cat(shares, 1);
}

// How far `mine` differs from this rank's tokens of `whole`.
double difference_of(const Tensor& mine, const Tensor& whole,
                     const std::vector<std::int64_t>& image_runs, const Group& context) {
  const bool is_whole = mine.size(1) == whole.size(1);
  const auto want = is_whole ? whole : share_of_runs(whole, image_runs, context);
  if (mine.sizes() != want.sizes()) return INFINITY;
  if (want.numel() == 0) return 0;
  const auto difference = (mine - want).abs().max() / whole.abs().max();
  const auto value = difference.item<double>();
  return std::isfinite(value) ? value : INFINITY;
}

// [places], float64; -1 for places of other stages.
Tensor differences_of(const Trace& mine, const Trace& whole, const Group& context) {
  std::vector<double> differences;
  for (const auto& where : whole.places) {
    if (const auto it = mine.attentions.find(where); it != mine.attentions.end()) {
      differences.push_back(it->second);
      continue;
    }
    const auto here = mine.tokens.find(where);
    differences.push_back(
        here == mine.tokens.end()
            ? -1
            : difference_of(here->second, whole.tokens.at(where), whole.image_runs, context));
  }
  return at::tensor(differences, at::kDouble);
}

// Finds for each place the rank that differs most; a place that no rank has differs beyond measure.
// Collective.
std::vector<VerifiedBlock> worst_of(const Group& world, const Tensor& differences,
                                    const Trace& whole, const Tolerances& tolerances) {
  world.await();  // ranks get here at different times
  const auto [worst, rank] = world.all_gather(differences.unsqueeze(0), 0).max(0);
  std::vector<VerifiedBlock> blocks;
  for (std::int64_t i = 0; i < std::int64_t(whole.places.size()); ++i) {
    const auto& where = whole.places[std::size_t(i)];
    const bool is_attention = whole.attentions.contains(where);
    blocks.push_back(
        {.where = where,
         .difference = worst[i].item<double>() < 0 ? INFINITY : worst[i].item<double>(),
         .rank = rank[i].item<int>(),
         .tolerance = is_attention ? tolerances.attention : tolerances.block});
  }
  return blocks;
}

// Whether the whole denoisers exceed the device. Their bits do not depend on where they live.
bool needs_pages(const VerifyOptions& o, const Deployment& deployment, const Probe& probe) {
  const auto& memory = deployment.options.memory;
  const auto device = deployment.devices.front();
  if (memory.offload.transformer != OffloadMode::kNone) return false;
  if (o.device_bytes == 0 && device.is_cpu()) return false;
  const auto room = o.device_bytes > 0 ? o.device_bytes : free_memory(device, 1).free_bytes;
  const auto job = job_of(deployment, probe.request);
  const auto bytes = predict_transformer_bytes(job, {}, 0, whole_transformer(job.shape()));
  const auto needs = device.is_cpu() ? process_bytes(job) + host_peak(job, bytes) : bytes.peak();
  if (needs <= room) return false;
  require(!device.is_cpu() || !memory.offload.folder.empty(), "the whole transformer takes ",
          readable_bytes(double(needs)), " on one rank, which may take ",
          readable_bytes(double(room)), ": on a CPU its pages need a folder for their files");
  return true;
}

// The deployment's model on its first rank's device, whole.
Deployment on_one_rank(Deployment d, bool is_paged) {
  d.devices.resize(1, at::kCPU);
  d.places = {};
  if (!is_paged) return d;
  auto& offload = d.options.memory.offload;
  offload.transformer = OffloadMode::kBlock;
  offload.pin = Pin::kOnTheFly;  // pinning all does not pay for a single pass
  return d;
}

// The fewest of which every data-parallel rank has one.
int fewest_pictures(const Degrees& degrees) {
  int count = degrees.dp;
  while (least_share(count, degrees.of_dp()) == 0) ++count;
  return count;
}

std::vector<std::string> layers_of_denoisers(const PlanJob& any_job) {
  const auto job = surveyed(any_job);
  std::vector<std::string> layers;
  for (const auto* const part : job.family->denoisers())
    for (const auto& tensor : job.tensors->of(*part).tensors) layers.push_back(tensor.layer);
  return layers;
}

// Keys that were kept are not known to the check.
bool checks_attention(const Probe& probe, const Degrees& degrees) {
  return degrees.ring * degrees.ulysses > 1 && !probe.keeps_references() &&
         probe.prefix == Prefix::kInEveryStep;
}

Tolerances tolerances_of(const VerifyOptions& options, at::ScalarType dtype) {
  if (options.tolerance) return {.block = *options.tolerance, .attention = *options.tolerance};
  if (dtype == at::kFloat) return {.block = 1e-4, .attention = 1e-4};
  // A number that is rounded has 0.43 times this error on average, as a root of squares; what a
  // ring merges is rounded twice.
  const auto rounding = dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
  return {.block = 0.05, .attention = rounding};
}

// The trace of this rank under the layout, with the fault. Throws InputError on all ranks if none
// had anything to change: the verdict would be on a layout without it. Collective.
Trace trace_with_fault(const Proof& proof, const Mesh& mesh, const Deployment& deployment) {
  const auto fault = proof.options.fault;
  if (!fault) return trace_of(proof, mesh, deployment, {});
  std::atomic<bool> is_injected = false;
  const auto layers = layers_of_denoisers(job_of(deployment, proof.probe.request));
  auto trace = trace_of(proof, mesh, deployment, with_fault(mesh, *fault, layers, is_injected));
  mesh.world.await();
  const auto injected = mesh.world.all_gather(at::tensor({is_injected ? 1.0 : 0.0}), 0);
  require(injected.max().item<double>() > 0,
          "the fault changes nothing in this model, which has no such layers");
  return trace;
}

}  // namespace

const VerifiedBlock* Verdict::first_divergent() const {
  const auto it = std::find_if(blocks.begin(), blocks.end(),
                               [](const VerifiedBlock& b) { return !b.is_right(); });
  return it == blocks.end() ? nullptr : &*it;
}

Verdict verify(Deployment deployment, const VerifyOptions& options) {
  deployment.options.cache = {};  // which would leave evaluations out
  const auto ranks = make_world(deployment);
  const auto degrees = deployment.degrees();
  if (options.fault) ranks->run([&](const Group&) { check_fault(*options.fault, degrees); });
  const auto& family = *deployment.family;
  const auto probe = probe_of(options.probe, deployment);
  const Proof proof{.options = options,
                    .probe = probe,
                    .num_pictures = fewest_pictures(degrees),
                    .num_branches = num_branches_of(deployment),
                    .steps = steps_of(family),
                    .checks_attention = checks_attention(probe, degrees)};
  const bool is_paged = needs_pages(options, deployment, probe);
  Trace whole;
  run_ranks({}, [&](const Group& one) {
    whole = trace_of(proof, make_mesh(one, {}), on_one_rank(deployment, is_paged), {});
  });

  const auto tolerances = tolerances_of(options, probe.dtype);
  Verdict verdict{.blocks = {},
                  .tolerances = tolerances,
                  .num_ranks = ranks->size(),
                  .one_rank_was_paged = is_paged,
                  .has_fault = options.fault.has_value()};
  std::mutex mutex;
  ranks->run([&](const Group& world) {
    world.await();  // each process has evaluated the whole denoisers by itself
    const auto mesh = make_mesh(world, degrees);
    const auto mine = trace_with_fault(proof, mesh, deployment);
    auto blocks = worst_of(world, differences_of(mine, whole, mesh.context), whole, tolerances);
    const std::scoped_lock lock(mutex);
    verdict.blocks = std::move(blocks);  // the same on every rank
  });
  return verdict;
}

}  // namespace braid
