"""Two encoders that agree: what the left half of a digit tells about its right half.

Run it: `python examples/two_views.py`. The encoders never see a label. They are trained so that the
code of one half tells much about the code of the other. Most of what both share is the digit.
"""

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import nn

import deminat
from deminat.infomax import InfoMaxLoss

TRAINING, BATCH, EPOCHS = 1_200, 128, 40


def encoder() -> nn.Module:
    """Return an encoder of half a digit; any module would do."""
    return nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 16))


def accuracy(codes: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the accuracy of a linear classifier on the codes of test digits."""
    classifier = LogisticRegression(max_iter=2_000).fit(codes[:TRAINING], labels[:TRAINING])
    return float(classifier.score(codes[TRAINING:], labels[TRAINING:]))


def main() -> None:
    """Train two encoders, and print what they learnt."""
    torch.manual_seed(0)
    digits = load_digits()
    order = torch.randperm(len(digits.images))
    images = torch.tensor(digits.images, dtype=torch.float32)[order] / 16
    labels = torch.tensor(digits.target)[order]
    left, right = images[:, :, :4].flatten(1), images[:, :, 4:].flatten(1)

    of_left, of_right = encoder(), encoder()
    loss_of = InfoMaxLoss(deminat.DEMI())  # or JSD(), InfoNCE(), MINE(), SMILE(5)
    weights = [*of_left.parameters(), *of_right.parameters()]
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    for epoch in range(EPOCHS + 1):
        with torch.no_grad():
            u, v = of_left(left), of_right(right)
        if epoch % 10 == 0:
            nats = loss_of.estimate(u[TRAINING:] @ v[TRAINING:].T)  # of held-out digits
            shown = f"{nats:6.2f} nats, digits read off both codes: "
            print(f"epoch {epoch:2}: {shown}{accuracy(torch.cat([u, v], dim=1), labels):.1%}")
        for rows in torch.randperm(TRAINING).split(BATCH):
            loss = loss_of.all_pairs(of_left(left[rows]), of_right(right[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
