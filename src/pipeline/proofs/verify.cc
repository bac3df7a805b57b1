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
#include "pipeline/engine.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/proofs/probe.h"

namespace braid {
namespace {

constexpr std::uint64_t kPictureSeeds = 1'000'000'007;

// What one rank computed, by place, in order of computation.
struct Trace {
  std::vector<std::string> places;
  std::map<std::string, Tensor> tokens;
  std::vector<std::int64_t> image_runs;  // tokens of the noise and of each reference, on one rank

  void add(const std::string& where, const Tensor& x) {
    places.push_back(where);
    tokens[where] = x.to(at::kCPU, at::kFloat);
  }
};

// One of the inputs that a layout divides, from 0 on; named where it is not the first.
struct Item {
  int picture, branch;

  std::string name_of(const std::string& place) const {
    return place + (branch == 0 ? "" : text_of(" of branch ", branch + 1)) +
           (picture == 0 ? "" : text_of(" of picture ", picture + 1));
  }
};

ProbeOptions probe_options(const VerifyOptions& o) {
  return {.pipeline = o.pipeline,
          .deployed = o.deployed,
          .synthetic = o.synthetic,
          .blocks = o.blocks,
          .width = o.width,
          .height = o.height,
          .max_sequence_length = o.max_sequence_length,
          .pictures = o.pictures};
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

Interposed interposed_for(const Mesh& mesh, std::optional<Fault> fault) {
  auto interposed = fault ? with_fault(mesh, *fault) : Interposed();
  interposed.part = [faulty = std::move(interposed.part)](DenoiserPart part) {
    if (faulty) part = faulty(std::move(part));
    return with_watched_residuals(std::move(part));
  };
  return interposed;
}

// One picture under the layout: a step with its branches, as generate_pictures() has it.
std::vector<Tensor> predict_picture(const VerifyOptions& options, const Probe& probe, int picture,
                                    const Denoisers& denoisers, at::Device device, Trace& trace) {
  const auto seed = options.seed + kPictureSeeds * std::uint64_t(picture);
  std::vector<DenoiserInput> branches;
  for (int branch = 0; branch < options.pipeline.layout.cfg; ++branch) {
    auto& in = branches.emplace_back(inputs_of(probe, seed, device, branch));
    in.watch = [&trace, item = Item{picture, branch}](const std::string& where, const Tensor& x) {
      trace.add(item.name_of(where), x);
    };
  }
  trace.image_runs = {branches.front().noise.x_BLC.size(1)};
  for (const auto& reference : branches.front().references)
    trace.image_runs.push_back(reference.x_BLC.size(1));
  add_modulations(branches, denoisers);
  refine_texts(branches, denoisers);
  std::optional<KeptPrefixes> prefixes;
  if (probe.keeps_prefix) prefixes.emplace(denoisers, branches);
  return denoisers.predict(branches);
}

// One picture for each data-parallel rank of the layout to prove, and as many branches of each as
// it has ranks for branches.
Trace trace_of(const VerifyOptions& options, const Probe& probe, const Mesh& mesh,
               const std::vector<at::Device>& devices, std::optional<Fault> fault) {
  const auto device = devices[std::size_t(mesh.world.rank())];
  const c10::DeviceGuard on(device);
  const auto& layout = options.pipeline.layout;
  const auto denoisers =
      denoisers_of(probe_options(options), probe, mesh, devices, interposed_for(mesh, fault));
  mesh.world.await();  // ranks load for unequal times
  if (probe.are_seen_once())
    denoisers->keep_references(
        probe.family->references_alone(references_of(probe, options.seed, device)));
  Trace trace;
  const auto mine = pictures_of_rank(mesh, layout.dp);
  std::vector<Tensor> velocities(std::size_t(layout.cfg));
  for (auto picture = mine.begin; picture < mine.begin + mine.count; ++picture) {
    const auto made = predict_picture(options, probe, int(picture), *denoisers, device, trace);
    for (std::size_t b = 0; b < made.size(); ++b)
      velocities[b] = velocities[b].defined() ? at::cat({velocities[b], made[b]}) : made[b];
  }
  mesh.world.await();
  for (int branch = 0; branch < layout.cfg; ++branch) {
    const auto all = gather_pictures(mesh, velocities[std::size_t(branch)]);
    for (int picture = 0; picture < layout.dp; ++picture)
      trace.add(Item{picture, branch}.name_of("velocity"), all.narrow(0, picture, 1));
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
    const auto here = mine.tokens.find(where);
    differences.push_back(
        here == mine.tokens.end()
            ? -1
            : difference_of(here->second, whole.tokens.at(where), whole.image_runs, context));
  }
  return at::tensor(differences, at::kDouble);
}

// For each place, the rank that differs most; a place that no rank has differs beyond measure.
// Collective.
std::vector<VerifiedBlock> worst_of(const Group& world, const Tensor& differences,
                                    const std::vector<std::string>& places) {
  world.await();  // ranks get here at different times
  const auto [worst, rank] = world.all_gather(differences.unsqueeze(0), 0).max(0);
  std::vector<VerifiedBlock> blocks;
  for (std::int64_t i = 0; i < std::int64_t(places.size()); ++i)
    blocks.push_back(
        {.where = places[std::size_t(i)],
         .difference = worst[i].item<double>() < 0 ? INFINITY : worst[i].item<double>(),
         .rank = rank[i].item<int>()});
  return blocks;
}

// Whether the whole transformer exceeds the device. Its bits do not depend on where it lives.
bool needs_pages(const VerifyOptions& o, const Probe& probe, at::Device device) {
  if (o.pipeline.memory.offload.transformer != OffloadMode::kNone) return false;
  if (o.device_bytes == 0 && device.is_cpu()) return false;
  const auto room = o.device_bytes > 0 ? o.device_bytes : free_memory(device, 1).free_bytes;
  auto job = job_of_family(probe.family);
  job.dtype = probe.dtype;
  job.is_on_host = device.is_cpu();
  job.width = probe.size.width;
  job.height = probe.size.height;
  job.frames = probe.size.frames;
  job.text_tokens = probe.text_tokens;
  for (const auto& size : probe.references)
    job.pictures.references.push_back(probe.family->num_tokens(size));
  job.memory = o.pipeline.memory;
  job = surveyed(std::move(job));
  const auto bytes = predict_transformer_bytes(job, {}, 0, whole_transformer(job.shape()));
  const auto needs = device.is_cpu() ? kProcessBytes + host_peak(job, bytes) : bytes.peak();
  if (needs <= room) return false;
  require(!device.is_cpu() || !o.pipeline.memory.offload.folder.empty(),
          "the whole transformer takes ", readable_bytes(double(needs)),
          " on one rank, which may take ", readable_bytes(double(room)),
          ": on a CPU its pages need a folder for their files");
  return true;
}

VerifyOptions in_pages(VerifyOptions o) {
  auto& offload = o.pipeline.memory.offload;
  offload.transformer = OffloadMode::kBlock;
  offload.pin = Pin::kOnTheFly;  // pinning all does not pay for a single pass
  return o;
}

}  // namespace

const VerifiedBlock* Verdict::first_divergent() const {
  const auto it = std::find_if(blocks.begin(), blocks.end(),
                               [&](const VerifiedBlock& b) { return b.difference > tolerance; });
  return it == blocks.end() ? nullptr : &*it;
}

Verdict verify(const VerifyOptions& options) {
  const auto deployment = deployment_of(probe_options(options));
  const auto degrees = deployment.degrees();
  const auto& devices = deployment.devices;
  const auto ranks = make_world(deployment);
  const auto probe = probe_of(probe_options(options), deployment);
  const bool is_paged = needs_pages(options, probe, devices.front());
  Trace whole;
  run_ranks({}, [&](const Group& one) {
    whole = trace_of(is_paged ? in_pages(options) : options, probe, make_mesh(one, {}),
                     {devices.front()}, {});
  });

  const double exact = probe.dtype == at::kFloat ? 1e-4 : 0.05;
  Verdict verdict{.blocks = {},
                  .tolerance = options.tolerance.value_or(exact),
                  .num_ranks = ranks->size(),
                  .one_rank_was_paged = is_paged};
  std::mutex mutex;
  ranks->run([&](const Group& world) {
    world.await();  // each process has evaluated the whole transformer by itself
    const auto mesh = make_mesh(world, degrees);
    const auto mine = trace_of(options, probe, mesh, devices, options.fault);
    auto blocks = worst_of(world, differences_of(mine, whole, mesh.context), whole.places);
    const std::scoped_lock lock(mutex);
    verdict.blocks = std::move(blocks);  // the same on every rank
  });
  return verdict;
}

}  // namespace braid
