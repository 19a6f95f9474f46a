//! Colours that remain distinguishable in print and with colour blindness (Paul Tol, "Colour Schemes", bright
//! scheme).

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartColor(pub u8, pub u8, pub u8);

/// First colour.
pub const BLUE: ChartColor = ChartColor(0x44, 0x77, 0xaa);
/// Second colour.
pub const RED: ChartColor = ChartColor(0xee, 0x66, 0x77);
/// Third colour.
pub const GREEN: ChartColor = ChartColor(0x22, 0x88, 0x33);
/// Fourth colour.
pub const YELLOW: ChartColor = ChartColor(0xcc, 0xbb, 0x44);
/// Fifth colour.
pub const CYAN: ChartColor = ChartColor(0x66, 0xcc, 0xee);
/// Sixth colour.
pub const PURPLE: ChartColor = ChartColor(0xaa, 0x33, 0x77);
/// For annotations.
pub const BLACK: ChartColor = ChartColor(0x33, 0x33, 0x33);
/// All colours in the order of use.
pub const ALL: [ChartColor; 6] = [BLUE, RED, GREEN, YELLOW, CYAN, PURPLE];
