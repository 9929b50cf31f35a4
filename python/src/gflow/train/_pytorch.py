# SPDX-License-Identifier: Apache-2.0
"""Training in PyTorch: on one device, or in a process for each with DistributedDataParallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gflow.frameworks import pytorch
from gflow.frameworks._imports import required
from gflow.train._fit import Samples, TrainedModel, batches_of, inputs_for, mean

if TYPE_CHECKING:
    from gflow.frameworks._models import ModelConfig
    from gflow.train._run import TrainingRun


def fit(run: TrainingRun, config: ModelConfig, samples: Samples) -> TrainedModel:
    torch = required("torch")
    torch.manual_seed(run.seed)
    told = pytorch.configure(run.told)
    device = pytorch.device_of(told)
    module = pytorch.build(config)
    model = pytorch.placed(module, told)
    steps = pytorch.TrainingSteps(model, torch.optim.Adam(model.parameters(), lr=run.learning_rate), told)
    criterion = torch.nn.CrossEntropyLoss() if samples.classes is not None else torch.nn.MSELoss()
    x = torch.from_numpy(inputs_for(samples.x, config, "pytorch"))
    y = torch.from_numpy(samples.y)

    def loss_of(model: Any, part: Any) -> Any:
        return criterion(model(x[part].to(device)), y[part].to(device))

    losses = []
    for epoch in range(run.epochs):
        losses.append(mean([steps(loss_of, [(torch.from_numpy(part),) for part in parts])
                            for parts in batches_of(len(x), run, epoch)]))
        run.report(epoch + 1, loss=losses[-1])
    weights = [one.detach().cpu().numpy() for one in module.state_dict().values()]
    return TrainedModel("pytorch", config, weights, losses, list(told["devices"]), samples.classes)


def rebuilt(trained: TrainedModel) -> Any:
    torch = required("torch")
    module = pytorch.build(trained.config)
    module.load_state_dict({name: torch.from_numpy(one) for name, one in zip(module.state_dict(), trained.weights)})
    return module.eval()
