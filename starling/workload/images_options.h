// What `starling train images` is asked to do: the command line as data, what is filled in and
// refused, and its JSON. No torch here.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace starling::workload {

// As typed. Empty and absent: see settle(), which knows what suits the rest.
struct ImagesOptions {
  std::optional<std::int64_t> workers = std::nullopt;

  std::string model = "mlp";
  std::string data = "fashion-mnist";
  std::string data_folder = "";  // empty: where load_images looks
  std::int64_t batch = 64;       // samples of one worker's step
  std::optional<double> epochs = std::nullopt;
  std::optional<std::int64_t> steps = std::nullopt;
  // Present: `steps` is that of a run on so many workers, taken over. settle() makes it as many
  // samples on those of the job.
  std::optional<std::uint32_t> steps_of_workers = std::nullopt;
  std::int64_t seed = 0;

  std::string algorithm = "starling";
  std::string schedule = "";
  std::optional<std::int64_t> group_size = std::nullopt;
  std::int64_t peers = 1;
  std::optional<std::int64_t> sync_period = std::nullopt;
  // Of eager rows, in epochs; 0: none.
  std::optional<double> model_sync = std::nullopt;
  std::string averaging = "";
  std::string trigger = "";
  std::optional<std::int64_t> age_bound = std::nullopt;
  bool no_overlap = false;
  std::string gradient_at = "own";
  bool bf16 = false;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;

  std::string optimizer = "";
  std::optional<double> lr = std::nullopt;
  std::string lr_schedule = "cosine:5%";
  std::optional<double> momentum = std::nullopt;
  bool nesterov = false;
  std::optional<double> weight_decay = std::nullopt;
  std::optional<double> beta1 = std::nullopt;
  std::optional<double> beta2 = std::nullopt;
  std::optional<double> epsilon = std::nullopt;
  std::optional<std::int64_t> window = std::nullopt;
  std::optional<double> clip = std::nullopt;
  std::string clip_mode = "";
  std::string non_finite = "stop";

  std::string delay = "";
  std::string emulate_compute = "";
  std::string pace = "";

  std::int64_t warm_up_steps = 0;  // of all, that no clock counts
  std::int64_t eval_every = 0;     // steps; 0: only in the end
  bool no_evaluation = false;
  std::int64_t evaluate_batch = 500;
  // For a plan, in place of training: the file of the profile; steps that the so many most
  // promising ways to train are then tried for.
  std::string measure = "";
  std::int64_t verify = 0;
  std::int64_t verify_top = 5;
  std::optional<std::int64_t> verify_bucket_bytes = std::nullopt;  // absent: whatever is fastest
  std::string out = "";  // empty: a new folder under runs/, or that of the run that is resumed
  std::int64_t checkpoint_every = 0;  // steps; 0: none
  std::int64_t keep = 3;              // checkpoints
  std::string resume = "";            // a run, or one of its checkpoints
  std::string profile = "";           // of `starling plan`: what to expect
  bool json = false;
  std::int64_t threads = 0;  // 0: cores / workers, or what the environment says
  std::string device = "cpu";
  std::string on_loss = "continue";
};

// As the table of algorithms has it, or "alone". Throws Error{Input} with the nearest known name.
std::string algorithm_name(const std::string& typed);

// With everything filled in that others depend on. Throws Error{Input}, in one line, for the first
// value that makes no sense for so many workers.
ImagesOptions settle(ImagesOptions options, std::size_t workers);

// Steps of a run on `samples` training images. Requires: settled.
std::uint64_t steps_of(const ImagesOptions& options, std::size_t workers, std::size_t samples);

// What all workers must agree on. Requires: settled.
nlohmann::ordered_json json_of(const ImagesOptions& options);
// The same in one line, "model=mlp data=…", for a worker that was started differently.
std::string text_of(const ImagesOptions& options);

}  // namespace starling::workload
