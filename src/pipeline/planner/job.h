// What is planned for: the sizes of a model, and a request.
#pragma once

#include "pipeline/families/flux.h"
#include "pipeline/planner/tensors.h"

namespace braid {

struct PlanJob {
  ModelSizes model;
  at::ScalarType dtype = at::kBFloat16;
  int width = 1024, height = 1024, text_tokens = 512, steps = 28;
  int batch_size = 1, num_pictures = 1;  // denoised together by a rank, of the whole run
  int branches = 1;                      // 2 with true guidance: the prompt and the negative one
  SharedModulation modulation = SharedModulation::kYes;
  RingForm ring_form = RingForm::kShift;
  SharedText text = SharedText::kNo;
  SharedDecode decode = SharedDecode::kYes;
  VaeTiling tiling = VaeTiling::kAuto;
  bool is_on_host = false;  // it computes on CPUs: what is on the device is in the host's memory

  Memory memory = {};                                // how weights are kept
  std::shared_ptr<const ModelTensors> tensors = {};  // none: surveyed() finds them

  std::int64_t image_tokens() const;
  std::int64_t element_bytes() const;
};

// A model that is known by name, "flux1-dev" or "flux1-schnell", with the sizes that Black Forest
// Labs publish and the defaults of its requests; nothing for other names.
std::optional<PlanJob> named_job(const std::string& name);

// With its tensors: of the files or, where there are none, of the model's sizes alone. They depend
// on the job's dtype and modulation, and on the layers that memory.keep_dense names.
PlanJob surveyed(PlanJob job, const ModelFiles* files = nullptr);

// Of a model's config files, with the dtype that a run on `device` takes: the options' own or, with
// kAuto, the checkpoint's. Throws InputError.
PlanJob job_of_model(const PipelineOptions& options, at::Device device = at::kCUDA);

// The same with what a request and the options' layout say; the request's prompts may be missing.
PlanJob job_of_request(const PipelineOptions& options, const Request& request, at::Device device);

// What one rank has of a step.
struct StepShare {
  std::int64_t branches;                   // evaluations of the transformer, one after another
  std::int64_t batch;                      // pictures in each
  std::int64_t image_tokens, text_tokens;  // outside of attention
  std::int64_t heads, attended_heads;      // of tensor parallelism; of these, Ulysses' in attention
  std::int64_t group_tokens;               // of the ranks that trade heads: queries of attention
  std::int64_t passed_tokens;              // around the ring: keys that this rank sends on

  std::int64_t tokens() const { return image_tokens + text_tokens; }
};

// Of rank `ring` x `ulysses` of the context; shares of uneven sizes go by share_of(), as in a run.
struct ContextPlace {
  int ring, ring_size, ulysses, ulysses_size;
};
StepShare share_of_step(const PlanJob& job, int tp, int branches_at_once, ContextPlace place);

}  // namespace braid
