#include "pipeline/planner/fastest.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/devices.h"

namespace braid {
namespace {

// A GPU of this machine. Layouts on devices that are alike are ordered by what they compute and
// move, so that the figures of one will do for all.
DeviceSpec this_gpu(at::Device device) {
  auto spec = devices_named("the device", "a100").front();
  spec.name = device.str();
  spec.link = "pcie4";
  spec.memory = double(c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
  return spec;
}

std::vector<DeviceSpec> devices_here(const std::vector<std::string>& names) {
  std::vector<DeviceSpec> devices;
  for (const auto& name : names) {
    const auto device = find_device(name);
    const auto sharers =
        name == "cuda" ? 1.0 : double(std::count(names.begin(), names.end(), name));
    auto spec = device.is_cpu() ? devices_named("the device", "cpu").front() : this_gpu(device);
    spec.memory /= sharers;
    spec.bfloat16_flops /= sharers;
    spec.float32_flops /= sharers;
    spec.memory_speed /= sharers;
    devices.push_back(std::move(spec));
  }
  return devices;
}

PlanJob job_of_request(const PipelineOptions& options, const Request& r, at::Device device) {
  auto job = job_of_model(options, device);
  const auto patch = int(2 * job.model.vae.downscale());
  job.width = std::max(1, r.width.value_or(job.width) / patch) * patch;
  job.height = std::max(1, r.height.value_or(job.height) / patch) * patch;
  job.steps = std::max(1, r.steps.value_or(job.steps));
  job.text_tokens = r.max_sequence_length.value_or(job.text_tokens);
  job.num_pictures = std::max(1, int(r.prompts.size()) * r.num_images);
  job.batch_size = std::max(1, r.batch_size);
  job.branches = r.negative_prompt && r.true_cfg > 1 ? 2 : 1;
  const auto& layout = options.layout;
  job.modulation = layout.shard_modulation ? SharedModulation::kYes : SharedModulation::kNo;
  job.text = layout.shard_text ? SharedText::kYes : SharedText::kNo;
  job.decode = layout.share_decode ? SharedDecode::kYes : SharedDecode::kNo;
  job.ring_form = layout.gather_keys ? RingForm::kGather : RingForm::kShift;
  return job;
}

}  // namespace

PlannedLayout fastest_layout(const PipelineOptions& options, const Request& request,
                             const std::vector<std::string>& names) {
  auto devices = devices_here(names);
  const auto link = link_of(devices);
  const auto job = job_of_request(options, request, find_device(names.front()));
  auto layouts = plan_layouts(job, {.devices = std::move(devices), .link = link, .network = link});
  const auto& best = layouts.front();
  require(best.fits(), "no layout of ", names.size(), names.size() == 1 ? " rank" : " ranks",
          " fits: ", to_string(best.grid), ": ", best.reason);
  return best;
}

}  // namespace braid
